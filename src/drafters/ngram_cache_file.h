// N-gram cache files, as llama.cpp's llama-lookup-create and llama-lookup-merge write them: tokens of one vocabulary,
// no header, no checksum. Therefore every number is checked when a file is read: a file that is cut off, has impossible
// numbers or has tokens outside the vocabulary is refused. A file made for another model whose vocabulary has the same
// size cannot be detected; its drafts are merely bad. A file is written under another name and then renamed, so a crash
// leaves the old file intact.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "drafters/ngram_counts.h"

namespace outrider {

// Errors name the file. kNotFound if there is none.
Result<NgramCounts> ReadNgramCache(const std::string& path, int vocabulary_size);
Status WriteNgramCache(const std::string& path, const NgramCounts& counts);

// The bytes of such a file and back; for tests and the fuzzer.
std::string EncodeNgramCache(const NgramCounts& counts);
Result<NgramCounts> DecodeNgramCache(std::string_view bytes, int vocabulary_size);

}  // namespace outrider
