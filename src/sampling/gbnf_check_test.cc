#include "sampling/gbnf_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace outrider {
namespace {

std::string Repeat(std::string_view text, size_t n) {
  std::string result;
  for (size_t i = 0; i < n; ++i) result += text;
  return result;
}

// `n` rules, in each of which {0} is the rule's number and {1} the next one's; the last one is "a".
std::string Chain(std::string_view rule, int n) {
  std::string result = "root ::= r0\n";
  for (int i = 0; i < n; ++i) result += fmt::format(fmt::runtime(rule), i, i + 1) + "\n";
  return result + fmt::format("r{} ::= \"a\"\n", n);
}

std::string Choice(int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += fmt::format("{}\"\\\"value {}\\\"\"", i == 0 ? "" : " | ", i);
  return result;
}

// As llama-common's converter writes an object of which all properties are optional.
std::string OptionalProperties(int n) {
  std::string rules, root = "root ::= \"{\" space (";
  for (int i = 0; i < n; ++i) {
    rules += fmt::format("p{0}-kv ::= \"\\\"p{0}\\\"\" space \":\" space string\n", i);
    if (i + 1 < n)
      rules += fmt::format("p{0}-rest ::= ( \",\" space p{1}-kv )? {2}\n", i, i + 1,
                           i + 2 < n ? fmt::format("p{}-rest", i + 1) : "");
    root += fmt::format("{}p{}-kv {}", i == 0 ? "" : " | ", i, i + 1 < n ? fmt::format("p{}-rest", i) : "");
  }
  return rules + root + ")? space \"}\"\n" + R"gbnf(space ::= | " " | "\n"{1,2} [ \t]{0,20}
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})
)gbnf";
}

struct Good {
  const char* what;
  std::string grammar;
};

TEST(CheckGbnfTest, PassesWhatPeopleAndConvertersWrite) {
  const std::vector<Good> grammars = {
      Good{"json", R"gbnf(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf"},
      Good{"arithmetic", R"gbnf(root  ::= (expr "=" term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf"},
      Good{"list", "root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"\n"},
      Good{"unicode", "root ::= [\u3041-\u3096\u30a1-\u30fa]+ \"é\" [\\U0001F600-\\U0001F64F]? [^\u4e00-\u9fff]"},
      Good{"repetitions", "root ::= \"a\"{3} \"b\"{0,5} \"c\"{2,} . {0} [x-z]{0,2000} \"d\"{1,1000000} \"e\"{0,0}\n"},
      Good{"comments", "# first\n\n  root ::= # all\n  a | # one\n b # two\r\na ::= \"#\"\n#between\nb ::= \"b\"#end"},
      Good{"groups", "root ::= ((\"a\" | (\"b\" \n (\"c\" | \"d\")*)+)? | \"e\"){1,3} (\n  \"f\"\n)\n"},
      Good{"several lines", "root ::=\n  \"a\" |\n  \"b\"\nmore ::= \"c\" |\n  \"d\"\n"},
      Good{"empty alternatives", "root ::= | \"a\" | x y | \"\"\nx ::= |\"x\"\ny ::= \"\" | []\n"},
      Good{"right recursion", "root ::= \"a\" root | \"-\" root tail? | \"\"\ntail ::= \"^\" root\n"},
      Good{"tokens", "root ::= <think> !</think>* </think> <[7]> !<[18446744073709551615]> .*\n"},
      Good{"defined twice", "root ::= \"a\"\nroot ::= \"b\"\n"},
      Good{"brackets in classes", "root ::= [[] [\\]] [a\\-z-] [-a] [^\\]-] [\"]"},
      Good{"chess", R"gbnf(root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
)gbnf"},
      // libllama does not see that these can begin with themselves, and works with them all the same.
      Good{"repeated option", "root ::= (\"a\"?)* (x)+\nx ::= \" \"?\n"},
      Good{"words", "root ::= (word \" \"?)+\nword ::= [a-z]+\n"},
      Good{"tool calls of Hermes",
           "root ::= (call? space)+\ncall ::= \"<tool_call>\" space \"</tool_call>\"\n"
           "space ::= | \" \" | \"\\n\"{1,2} [ \\t]{0,20}\n"},
      Good{"1000 strings", "root ::= " + Choice(1000)}, Good{"3000 strings", "root ::= (" + Choice(3000) + ")"},
      Good{"200 optional properties", OptionalProperties(200)},
      Good{"1000 optional properties", OptionalProperties(1000)},
      Good{"a long string", "root ::= \"\\\"\" [^\"]{0,2000} \"\\\"\""},
      Good{"nesting", "root ::= " + Repeat("(", 300) + "\"a\"" + Repeat(")", 300)},
      Good{"a chain", Chain("r{} ::= r{}", 3000)}};
  for (const Good& good : grammars) {
    const Status status = CheckGbnf(good.grammar);
    EXPECT_TRUE(status.ok()) << good.what << ": " << status.message();
  }
}

struct Bad {
  std::string grammar;
  const char* problem;  // part of the message
};

// Of this thread, so that a limit holds on a busy machine, too.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void ExpectRefused(const std::vector<Bad>& grammars) {
  for (const Bad& bad : grammars) {
    const double start = CpuSeconds();
    const Status status = CheckGbnf(bad.grammar, [](std::string_view text) { return text == "<think>"; });
    const double taken = CpuSeconds() - start;
    SCOPED_TRACE(bad.grammar.substr(0, 100));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), "grammar");
    EXPECT_NE(status.message().find(bad.problem), std::string::npos) << status.message();
    EXPECT_LT(status.message().size(), 250u);
    // Below 0.05 s without sanitizers.
    EXPECT_LT(taken, 2);
  }
}

TEST(CheckGbnfTest, RefusesWhatDoesNotParse) {
  ExpectRefused({Bad{"", "has no rules"},
                 Bad{"# nothing\n", "has no rules"},
                 Bad{"a ::= \"a\"", "no rule named \"root\""},
                 Bad{"root ::= a | b\na ::= \"a\"", "uses the rule \"b\""},
                 Bad{"a ::= root\nroot ::= \"x\"\nb ::= c{0}\nd ::= \"\"", "\"c\""},
                 Bad{"root ::= \"a\"\n\nother ::= \"b\n\n",
                     "line 3, rule \"other\": a string or a character class is not closed"},
                 Bad{"root ::= [a-z", "a string or a character class is not closed"},
                 Bad{"root ::= [a-", "a string or a character class is not closed"},
                 Bad{"root ::= [^", "a string or a character class is not closed"},
                 Bad{"root ::= \"\\q\"", "an escape is none of"},
                 Bad{"root ::= \"\\", "an escape is none of"},
                 Bad{"root ::= \"\\x4\"", "2 hexadecimal"},
                 Bad{"root ::= \"\\u12\"", "4 hexadecimal"},
                 Bad{"root ::= [\\U0001F60]", "8 hexadecimal"},
                 Bad{"root ::= \"\\x", "2 hexadecimal"},
                 Bad{"root ::= (\"a\"", "a group is not closed"},
                 Bad{"root ::= \"a\")", "does not end where its line does"},
                 Bad{"root = \"a\"", "'::=' is missing"},
                 Bad{"root", "'::=' is missing"},
                 Bad{"root ::= \"a\" \"b\"\n\"c\"", "line 2: the name"},
                 Bad{"_ ::= \"a\"", "the name of a rule is missing"},
                 Bad{"root ::= a_b\na ::= \"\"", "does not end"},
                 Bad{"root ::= *", "nothing before it"},
                 Bad{"root ::= \"\"+", "nothing before it"},
                 Bad{"root ::= []?", "nothing before it"},
                 Bad{"root ::= \"a\"{0}{2}", "nothing before it"},
                 Bad{"root ::= \"a\" | *", "nothing before it"},
                 Bad{"root ::= \"a\"{", "a number is missing"},
                 Bad{"root ::= \"a\"{,3}", "a number is missing"},
                 Bad{"root ::= \"a\"{1", "not closed with '}'"},
                 Bad{"root ::= \"a\"{1,2", "not closed with '}'"},
                 Bad{"root ::= \"a\"{1;2}", "not closed with '}'"},
                 Bad{"root ::= \"a\"{99999999999999999999}", "too large"},
                 Bad{"root ::= !\"a\"", "'!' is not followed"},
                 Bad{"root ::= <[x]>", "a number is missing"},
                 Bad{"root ::= <[5>", "does not end with ']>'"},
                 Bad{"root ::= <think", "does not end with '>'"},
                 Bad{"root ::= <think> <no token>", "not one token"},
                 Bad{std::string("root ::= \"a\0\"", 13), "NUL"},
                 Bad{"root ::= \"\xF0\"", "UTF-8"}});
}

TEST(CheckGbnfTest, RefusesWhatLibllamaCannotStand) {
  ExpectRefused({// These leave libllama without a stack, on which it aborts.
                 Bad{"root ::= a root\na ::= b\nb ::= \"\"", "rule \"root\" never comes to an end"},
                 Bad{"root ::= \"x\" y\ny ::= (\"\")y", "rule \"y\""},
                 // Left recursion, seen by libllama and not.
                 Bad{"root ::= root \"a\" | \"b\"", "rule \"root\" can begin with itself"},
                 Bad{"root ::= a\na ::= \"\" b | b \"x\"\nb ::= c? a\nc ::= \"c\"", "can begin with itself"},
                 Bad{"root ::= a root \"x\"\na ::= b\nb ::= \"\" | \"y\"", "rule \"root\" can begin with itself"},
                 Bad{"root ::= \"a\"**", "rule \"root\" can begin with itself"},
                 Bad{"root ::= \"q\" list\nlist ::= (x y) list \";\" | \"e\"\nx ::= \"x\"?\ny ::= (\"y\"?)",
                     "rule \"list\" can begin"},
                 // The stack of the thread.
                 Bad{"root ::= " + Repeat("(", 300'000), "nested more than"},
                 Bad{"root ::= " + Repeat("((a|", 100'000), "nested more than"},
                 Bad{Chain("r{} ::= r{}", 40'000), "chain of more than"},
                 Bad{Chain("r{} ::= r{} \"x\"", 2000), "nested more than"},
                 // Exponential time.
                 Bad{Chain("r{0} ::= r{1} | r{1}", 32), "too many ways"},
                 Bad{Chain("r{0} ::= r{1} \"x\" | r{1} \"y\"", 32), "ways"},
                 Bad{Chain("r{0} ::= \"\" | (r{1} \"x\") | ((r{1}) \"y\")", 20), "ways"},
                 Bad{"root ::= (\"=\" | \"=\"){30} \"x\"", "too ambiguous"},
                 Bad{"root ::= ([a-z] | [a-z] | [b-y])* \"!\"", "too ambiguous"},
                 Bad{"root ::= ([ -~]+)+ \"\\t\"", "too ambiguous"},
                 Bad{"root ::= \"=\" root \"x\" | \"=\" root \"y\" | \"b\"", "too ambiguous"},
                 Bad{"root ::= \"a long beginning of the text\" (\"-\" | \"-\" \"-\"?){40}", "too ambiguous"},
                 Bad{"root ::= (\"a\"?){0,1000}", "too ambiguous"},
                 Bad{"root ::= <think> (\"*\" | [*] | .)* \"x\"", "too ambiguous"},
                 // Endless memory.
                 Bad{"root ::= \"x\"{5,3}", "maximum below its minimum"},
                 Bad{"root ::= \"x\"{1000000}", "repeated more than"},
                 Bad{"root ::= ((\"a\"){1,1000}){1,1000}", "repetitions of repetitions"},
                 Bad{"root ::= \"a\"{100}{100}", "repetitions of repetitions"},
                 Bad{"root ::= \"" + Repeat("a", 100'000) + "\"{2000}", "elements"},
                 Bad{"root ::= [" + Repeat("ab", 10'000) + "]{0,2000}", "elements"},
                 Bad{"root ::= \"" + Repeat("a", 2'000'000) + "\"", "bytes long"},
                 Bad{"root ::= " + Repeat("\"a\"{0,2000} ", 100), "rules and groups"},
                 Bad{Repeat("n", 10'000) + " ::= " + Repeat("()", 10'000), "so long a name"},
                 // Very many stacks.
                 Bad{"root ::= " + Choice(10'000), "can begin in more than"},
                 Bad{"root ::= \"x\" " + Repeat("a? ", 3000) + "\na ::= \"a\"", "can go on in more"},
                 Bad{Chain("r{} ::= r{} n", 900) + "n ::= \"\" | " + Choice(1000), "can be followed by more than"},
                 Bad{"root ::= \"a\" root n | \"b\"\nn ::= \"\" | " + Choice(1000), "nests in itself"}});
}

TEST(CheckGbnfTest, MessagesAreShortEvenIfNamesAreLong) {
  const Status status = CheckGbnf("root ::= " + Repeat("x", 5000));
  EXPECT_LT(status.message().size(), 200u);
  EXPECT_NE(status.message().find("xxx...\""), std::string::npos);
}

}  // namespace
}  // namespace outrider
