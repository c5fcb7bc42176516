"""What the model is asked so that it writes the text that its drafter learns from: broad, and without end.

Most requests are not written out here: the model gets their first words as if the user had begun to type, and goes on
itself. A prompt depends only on the seed and its number, so a run that is continued goes on with the next one."""

import random
from dataclasses import dataclass

TEMPERATURES = (0.0, 0.0, 0.0, 0.3, 0.7, 1.0)  # of answers; many users and all benchmarks ask for 0
USER_TEMPERATURE = 0.9

SYSTEMS = (None, None, None, None, "You are a helpful assistant.", "You are a careful programmer. Answer with code.",
           "You are a concise assistant.", "You are a patient teacher.", "Answer in JSON.")

CHAT = """Can you help me|Can you explain|Could you|Please|Please explain|I need|I want to|I'm planning|I have a|What is|What are|What is
the best way to|How do I|How does|How can I|How many|Why do|Why is|When did|Who was|Where is|Explain|Explain the concept of|Explain how|
Explain the difference between|Write a short story about|Write a poem about|Write an email to|Write a paragraph about|Write an essay on|
Write a letter to|Write a speech about|Write a review of|Write a song about|Write a product description for|Write a blog post about|Create a
list of|Create a table of|Create a plan for|Give me|Give three examples of|Give me a recipe for|List five|List the|Describe|Compare|Compare
and contrast|Design|Plan a|Help me write|Imagine you are|Pretend you are|Picture yourself as|Is it true that|Tell me about|Tell me a joke
about|What would happen if|What does|Do you know|Suggest|Recommend|Discuss|Analyze|Identify|Compose|Develop|Outline|Name three|Make a|Show me|
Hi|Hello|Let's|The|In|My|As a|Should I|Act as|Give me advice on|Rewrite the following sentence:|Proofread this:|Classify the following:|
Extract the names from this text:|Correct the grammar of:|Which of these|Who is|Who wrote|What year did|What was the name of"""
CODE = """Write a Python function that|Write a C++ program that|Write a function in JavaScript to|Write a SQL query to|Write a bash script
that|Write a class in Java that|Write a Rust function that|Write a Go program that|Write a regular expression that|Write unit tests for|Write
HTML for|Write a simple website that|Write documentation for|Implement|Implement a class for|Using Python,|In C,|In TypeScript,|Fix the bug in
the following code:|Refactor the following code:|Add comments to this code:|Complete the following function:|What does this code do?|def |
```python\n|```js\n|Convert this loop to a list comprehension:|How do I parse|Write a Dockerfile for|Explain this error:"""
LANGUAGES = ("German", "French", "Spanish", "Italian", "Portuguese", "Dutch", "Polish", "Swedish", "Turkish", "Japanese", "Chinese", "Russian")
FOREIGN = ("Wie kann ich", "Was ist", "Erkläre mir", "Schreibe einen", "Pourquoi", "Qu'est-ce que", "Écris un", "¿Qué es", "¿Cómo puedo",
           "Escribe un", "Che cosa", "Scrivi un", "O que é", "Wat is", "Co to jest", "Что такое", "请", "什么是", "日本の")
TOPICS = """the sea|a small town|the history of bread|solar power|the human heart|a football match|a new phone|the French revolution|bees|an old
bridge|electric cars|a lost dog|the moon|a job interview|climate change|coffee|a famous painter|the first computers|a night train|vaccines|a
chess game|earthquakes|a wedding|the stock market|a volcano|memory and sleep|a court case|the Roman empire|a software update|tea ceremonies|
a mountain village|music in films|black holes|a hospital|recycling|the invention of paper|a school festival|wolves|inflation|an election|
a museum robbery|the printing press|desert plants|a space station|learning languages|a bakery|the Silk Road|robots in factories|a storm|
housing prices|the water cycle|a library|deep sea fish|a peace treaty|running a marathon|photosynthesis|a family reunion|ancient Egypt"""
DOCUMENTS = ("Write a news article about {topic}.", "Write an encyclopedia entry about {topic}.", "Write a report on {topic} with numbers and names.",
             "Write a story of three paragraphs about {topic}.", "Write the minutes of a meeting about {topic}.", "Write a dialogue about {topic}.")
ABOUT_DOCUMENTS = ("Summarize the following text:\n\n{text}", "Summarize:\n\n{text}", "{text}\n\nTL;DR", "Summarize this in three sentences.\n\n{text}",
                   "Read the passage and answer: who or what is it about, and what happens?\n\n{text}", "List the main points of this text.\n\n{text}",
                   "Rewrite the following text to be shorter:\n\n{text}", "Correct the mistakes in this text and repeat it:\n\n{text}",
                   "Answer the question based on the passage.\n\nPassage: {text}\n\nQuestion: What", "Write three questions about this text.\n\n{text}",
                   "Extract all names and numbers as JSON.\n\n{text}", "Translate into {language}:\n\n{text}", "Give this text a title.\n\n{text}")
JSON = ("Create a JSON object that describes {topic}.", "Give me a JSON list of five things about {topic}, each with \"name\" and \"description\".",
        "Answer with JSON only: {{\"topic\": \"{topic}\", \"facts\": [", "Write a YAML file about {topic}.", "Make a CSV table with data about {topic}.",
        "Make a Markdown table about {topic} with three columns.", "Return an array of objects with \"question\" and \"answer\" about {topic}.")
MATH = ("{name} has {a} apples and buys {b} more for {c} dollars each. How much does {name} spend, and how many apples are there now?",
        "A train leaves at {a}:00 and travels at {b} km/h for {c} hours. How far does it go?", "What is {a} * {b} + {c}?", "Solve for x: {a}x + {b} = {c}",
        "{name} earns ${a} an hour and works {b} hours a week. How much does {name} earn in {c} weeks?", "Is {a} a prime number? Explain step by step.",
        "A rectangle is {a} m long and {b} m wide. What are its area and perimeter?", "If {a} workers need {b} days, how many days do {c} workers need?",
        "A shop sells {a} books on Monday, {b} on Tuesday and {c} on Wednesday. What is the average?", "Calculate", "If a", "Find the", "How much is {a} % of {b}?")
FOLLOW_UPS = ("Why?", "Can you give an example?", "Make it shorter.", "Explain that in simpler words.", "What else", "Now", "And", "Rewrite it as", "How",
              "Can you add", "Thanks! What about", "Put that into a table.", "Translate your answer into {language}.", "Say more about", "Is that")
NAMES = ("John", "Mary", "Ahmed", "Li", "Sofia", "Tom", "Priya", "Anna")


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.replace("\n", " ").replace("\\n", "\n") for part in text.split("|"))


CHAT_OPENINGS, CODE_OPENINGS, TOPIC_LIST = _words(CHAT), _words(CODE), _words(TOPICS)

# How often each kind is asked.
SHARES = {"chat": 34, "code": 14, "document": 20, "json": 8, "translation": 8, "foreign": 4, "math": 8, "open": 4}


@dataclass(frozen=True)
class Prompt:
    kind: str
    system: str | None
    user: str  # may have {text}
    unfinished: bool  # the model goes on writing the user's words
    document: str | None  # what the model is asked to write first, for {text}
    follow_up: str | None  # begins a second turn
    temperature: float


def draw(seed: int, number: int) -> Prompt:
    r = random.Random(f"{seed}/{number}")
    kind = r.choices(list(SHARES), list(SHARES.values()))[0]
    topic, language = r.choice(TOPIC_LIST), r.choice(LANGUAGES)
    system, document, unfinished = r.choice(SYSTEMS), None, False
    match kind:
        case "chat":
            user, unfinished = r.choice(CHAT_OPENINGS), True
        case "code":
            user, unfinished = r.choice(CODE_OPENINGS), True
        case "document":
            document = r.choice(DOCUMENTS).format(topic=topic)
            user = r.choice(ABOUT_DOCUMENTS).replace("{language}", language)
            unfinished = user.endswith("What")
        case "json":
            user = r.choice(JSON).format(topic=topic)
        case "translation":
            user = r.choice((f"Translate the following {language} text to English:", f"Translate {language} to English:",
                             f"Translate to {language}:"))
            unfinished = True
        case "foreign":
            user, unfinished = r.choice(FOREIGN), True
        case "math":
            user = r.choice(MATH).format(name=r.choice(NAMES), a=r.randint(2, 99), b=r.randint(2, 60), c=r.randint(2, 20))
            unfinished = user[-1].isalpha()
        case _:
            user, unfinished = "", True
    follow_up = r.choice(FOLLOW_UPS).format(language=language) if r.random() < 0.3 else None
    return Prompt(kind, system, user, unfinished, document, follow_up, r.choice(TEMPERATURES))
