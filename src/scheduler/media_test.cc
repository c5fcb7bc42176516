// Prompts with pictures: what the engine reads, what is reused, and that others go on meanwhile.
#include <gtest/gtest.h>

#include "engine/fake_engine.h"
#include "engine/fake_media.h"
#include "engine/fake_tokenizer.h"
#include "sampling/fake_filters.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

EngineInfo SmallEngine(Rollback rollback = Rollback::kDropCells, int n_sequences = 2) {
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = n_sequences;
  info.sequence_length = 400;
  info.max_batch = 64;
  info.micro_batch = 32;
  info.max_outputs = 32;
  info.rollback = rollback;
  info.remembers = rollback != Rollback::kDropCells;
  return info;
}

struct House {
  explicit House(EngineInfo info = SmallEngine(), uint64_t cache_bytes = 0)
      : engine(std::move(info), FakeEngine::Hashing(256)),
        scheduler(engine, tokenizer, filters, {.prompt_slice = 16, .cache_bytes = cache_bytes}, nullptr, clock) {}

  std::shared_ptr<Generation> Submit(GenerationRequest request) {
    auto generation = scheduler.Submit(std::move(request));
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    return generation.ok() ? *generation : nullptr;
  }

  // The text and how much of the prompt was reused.
  std::pair<std::string, int> Run(GenerationRequest request) {
    auto generation = Submit(std::move(request));
    while (scheduler.Step()) clock.Advance(std::chrono::milliseconds(1));
    const Chunk chunk = generation->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
    return {chunk.text, chunk.completion ? chunk.completion->timings.cached_tokens : -1};
  }

  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  ManualClock clock;
  FakeEngine engine;
  Scheduler scheduler;
};

void AppendText(const std::string& text, GenerationRequest* request) {
  for (const char c : text) request->prompt.push_back(static_cast<unsigned char>(c));
}

void AppendPicture(const std::string& file, GenerationRequest* request) {
  auto rows = std::make_shared<FakeMediaRows>(file);
  request->media.push_back({static_cast<Pos>(request->prompt.size()), rows});
  for (Pos row = 0; row < rows->count(); ++row) request->prompt.push_back(StandIn(rows->id(), row, 258));
}

GenerationRequest Request(const std::string& before, const std::string& file, const std::string& after) {
  GenerationRequest request;
  AppendText(before, &request);
  if (!file.empty()) AppendPicture(file, &request);
  AppendText(after, &request);
  request.sampling.temperature = 0;
  request.max_tokens = 12;
  return request;
}

// What the engine says if it reads `text` byte by byte, whatever way the bytes came.
std::string Expected(const std::string& text) {
  House house;
  return house.Run(Request(text, "", "")).first;
}

TEST(MediaTest, TheEngineReadsTheValues) {
  for (const size_t rows : {1, 15, 16, 17, 32, 100}) {
    const std::string file(rows, 'x');
    House house;
    EXPECT_EQ(house.Run(Request("See: ", file, " What is it?")).first, Expected("See: " + file + " What is it?"))
        << rows;
    House at_the_end;
    EXPECT_EQ(at_the_end.Run(Request("See: ", file, "")).first, Expected("See: " + file)) << rows;
    House at_the_beginning;
    EXPECT_EQ(at_the_beginning.Run(Request("", file, "!")).first, Expected(file + "!")) << rows;
  }
}

TEST(MediaTest, TwoPicturesSideBySide) {
  GenerationRequest request = Request("a", "one", "");
  AppendPicture("two", &request);
  AppendText("b", &request);
  House house;
  EXPECT_EQ(house.Run(std::move(request)).first, Expected("aonetwob"));
}

TEST(MediaTest, ThePictureDecidesWhatIsReused) {
  House house;
  house.Run(Request("See: ", "a picture", " What is it?"));
  EXPECT_EQ(house.Run(Request("See: ", "a picture", " Why?")).second, 5 + 9 + 3) << "up to ' Wh'";
  EXPECT_EQ(house.Run(Request("See: ", "b picture", " Why?")).second, 5);
  EXPECT_EQ(house.Run(Request("See: ", "b picture", " Why?")).second, 5 + 9 + 5 - 1) << "all but the last token";
}

TEST(MediaTest, TextWithTheStandInsIsNotThePicture) {
  const GenerationRequest picture = Request("See: ", "a picture", " What is it?");
  GenerationRequest forged = picture;
  forged.media.clear();
  std::string as_text;
  for (const Token token : forged.prompt) as_text += FakeTokenizer().Piece(token, true);
  House house;
  house.Run(picture);
  House fresh;
  const std::string alone = fresh.Run(forged).first;
  const auto [text, reused] = house.Run(forged);
  EXPECT_EQ(reused, 5);
  EXPECT_EQ(text, alone);
  EXPECT_EQ(house.Run(picture).second, 5) << "and the other way round";
}

TEST(MediaTest, ACopyOfAPromptIsOfItsPicturesToo) {
  for (const Rollback rollback : {Rollback::kDropCells, Rollback::kReplay}) {
    House house(SmallEngine(rollback, /*n_sequences=*/1), /*cache_bytes=*/1 << 20);
    const GenerationRequest picture = Request("See: ", "a picture", " What is it?");
    GenerationRequest forged = picture;
    forged.media.clear();
    GenerationRequest further = Request("See: ", "a picture", " What is it?");
    house.Run(picture);
    house.Run(Request("something else", "", ""));
    const auto [of_forged, reused_by_forged] = house.Run(forged);
    EXPECT_LE(reused_by_forged, 5) << "the same tokens, but as text";
    EXPECT_EQ(of_forged, House().Run(forged).first);
    const auto [of_other, reused_by_other] = house.Run(Request("See: ", "b picture", " What is it?"));
    EXPECT_LE(reused_by_other, 5);
    EXPECT_EQ(of_other, Expected("See: b picture What is it?"));

    AppendText(Expected("See: a picture What is it?") + " Why?", &further);
    const auto [of_further, reused] = house.Run(further);
    if (rollback == Rollback::kDropCells) {
      EXPECT_GE(reused, 5 + 9 + 12) << "the copy";
    }
    EXPECT_EQ(of_further, House().Run(further).first);
  }
}

TEST(MediaTest, ARunningStateIsReadAgain) {
  House house(SmallEngine(Rollback::kReplay));
  const std::string file(300, 'p');
  const std::string expected = Expected("See: " + file + " What?");
  EXPECT_EQ(house.Run(Request("See: ", file, " What?")).first, expected);
  const auto [text, reused] = house.Run(Request("See: ", file, " What?"));
  EXPECT_EQ(text, expected);
  EXPECT_GT(reused, 0);
}

TEST(MediaTest, OthersGoOnWhileAPictureIsRead) {
  House house;
  GenerationRequest other = Request("Once", "", "");
  other.max_tokens = 200;
  auto running = house.Submit(other);
  for (int i = 0; i < 3; ++i) house.scheduler.Step();
  running->Wait(std::chrono::milliseconds(0));
  house.engine.ForgetBatches();
  auto with_picture = house.Submit(Request("See: ", std::string(160, 'p'), "!"));
  int steps = 0;
  for (; !with_picture->Wait(std::chrono::milliseconds(0)); ++steps) house.scheduler.Step();
  const Chunk chunk = running->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
  EXPECT_GE(static_cast<int>(chunk.tokens.size()), steps / 2 - 1) << "a token every other step";
  for (const Batch& batch : house.engine.batches()) EXPECT_LE(batch.size(), 16 + 2);
}

TEST(MediaTest, AFailedStepIsReadAgain) {
  House house;
  int failures = 1;
  house.engine.FailWhile([&](const Batch& batch) { return batch.rows()[0].values != nullptr && failures-- > 0; });
  auto other = house.Submit(Request("Look: ", "another", "?"));
  EXPECT_EQ(house.Run(Request("See: ", "a picture", "?")).first, Expected("See: a picture?"));
  EXPECT_LT(failures, 0) << "the step with both pictures failed, and each of them was read again";
  EXPECT_EQ(other->Wait(std::chrono::milliseconds(0)).value_or(Chunk{}).text, Expected("Look: another?"));
}

TEST(MediaTest, ASlotWithAPictureIsNotSaved) {
  House house;
  house.Run(Request("See: ", "a picture", "?"));
  const Result<SavedSlot> saved = house.scheduler.SaveSlot(0);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.status().code(), StatusCode::kUnsupported);
  ASSERT_TRUE(house.scheduler.EraseSlot(0).ok());
  house.Run(Request("no picture", "", ""));
  EXPECT_TRUE(house.scheduler.SaveSlot(0).ok());
}

TEST(MediaTest, APictureThatCannotBeComputedIsTheRequestsError) {
  House house;
  const auto generation = house.scheduler.Submit(Request("See: ", "?", ""));
  ASSERT_FALSE(generation.ok());
  EXPECT_EQ(generation.status().message(), "this picture cannot be computed");
}

TEST(MediaTest, TheFieldOfAPictureIsNamed) {
  GenerationRequest request = Request("See: ", "?", "");
  request.media[0].field = "prompt";
  EXPECT_EQ(ComputeMedia(request.media, [] { return true; }).field(), "prompt");
  const GenerationRequest cat = Request("See: ", "cat", "");
  EXPECT_EQ(ComputeMedia(cat.media, [] { return false; }).code(), StatusCode::kUnavailable);
}

TEST(MediaTest, TheMemoryOfAllRequestsIsLimited) {
  MediaMemory memory(100);
  {
    const auto alone = memory.Hold("a", 1000);
    EXPECT_TRUE(alone.ok()) << "else it could never be answered";
    EXPECT_EQ(memory.Hold("b", 1).status().code(), StatusCode::kResourceExhausted);
  }
  {
    const auto first = memory.Hold("a", 60), second = memory.Hold("b", 40), third = memory.Hold("c", 1);
    EXPECT_TRUE(first.ok() && second.ok());
    EXPECT_FALSE(third.ok());
  }
  const auto first = memory.Hold("a", 40), second = memory.Hold("a", 20), of_another = memory.Hold("b", 50);
  EXPECT_TRUE(first.ok() && of_another.ok());
  EXPECT_FALSE(second.ok()) << "half of it is for others";
}

TEST(MediaTest, APictureIsReadBesideOtherAdapters) {
  EngineInfo info = SmallEngine(Rollback::kDropCells, 4);
  info.n_adapters = 1;
  std::vector<GenerationRequest> requests;
  for (const AdapterSet& adapters : {AdapterSet{}, AdapterSet{{0, 1}}}) {
    for (const char* file : {"a picture", ""}) {
      requests.push_back(Request("See: ", file, " What is it?"));
      requests.back().adapters = adapters;
    }
  }
  House house(info);
  std::vector<std::shared_ptr<Generation>> running;
  for (const GenerationRequest& request : requests) running.push_back(house.Submit(request));
  while (house.scheduler.Step()) house.clock.Advance(std::chrono::milliseconds(15));
  for (size_t i = 0; i < requests.size(); ++i) {
    const Chunk chunk = running[i]->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
    EXPECT_EQ(chunk.text, House(info).Run(requests[i]).first) << i;
  }
}

TEST(MediaTest, TextTokensLeaveOutStandIns) {
  const GenerationRequest request = Request("ab", "picture", "cd");
  EXPECT_EQ(TextTokens(request.prompt, request.media), (std::vector<Token>{'a', 'b', 'c', 'd'}));
}

}  // namespace
}  // namespace outrider
