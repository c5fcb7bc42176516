// RequestReader: reads one HTTP/1.x request piece by piece, as its bytes arrive, and knows when it is complete. It lets
// the server read many slow senders in one thread (http/connection_loop.h).
//
// It reads only what decides where the request ends: the end of the head, Content-Length, and chunks. Everything else
// is left to httplib, which parses the complete request from Message(). The two agree on the end by construction:
// httplib is given the bytes of this one request and nothing after them, and a connection is used again only if httplib
// has read all of them. Chunks are decoded here, so that a body of many small chunks takes no more memory than its
// content; httplib gets them as a single chunk. A head whose framing is ambiguous counts as a request without body,
// after which the connection must be closed (must_close); httplib answers it with 400.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider {

// The request line and the header fields, as views of a text that the caller keeps.
class RequestHead {
 public:
  RequestHead() = default;
  explicit RequestHead(std::string_view text);  // up to and including the empty line; lines end with CR LF

  std::string_view method() const { return method_; }
  std::string_view path() const { return path_; }        // not decoded, without the query
  std::string_view Header(std::string_view name) const;  // the first of that name; "" if there is none
  bool Has(std::string_view name) const;                 // names are compared without regard to case
  const std::vector<std::pair<std::string_view, std::string_view>>& headers() const { return headers_; }
  bool is_http_1_0() const { return http_1_0_; }

 private:
  std::string_view method_, path_;
  bool http_1_0_ = false;
  std::vector<std::pair<std::string_view, std::string_view>> headers_;
};

struct RequestLimits {
  size_t max_head_bytes = 64 << 10;
  size_t max_body_bytes = 8 << 20;
};

class RequestReader {
 public:
  enum class State {
    kHead,          // waiting for the end of the head
    kBody,          // the head is complete; waiting for the rest of the body
    kComplete,      // Message() is a request
    kHeadTooLarge,  // 431
    kBodyTooLarge,  // 413; known as soon as a Content-Length says so
    kBadChunk,      // 400: the body is not the chunks that it was announced to be
  };

  explicit RequestReader(const RequestLimits& limits) : limits_(limits) {}
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Takes bytes and returns how many it took: fewer than all at the end of the head (call again for the body) and at
  // the end of the request (the rest is the next one). Takes nothing in any other state than kHead and kBody.
  size_t Take(std::string_view bytes);

  State state() const { return state_; }
  bool began() const { return !head_text_.empty(); }
  const RequestHead& head() const { return head_; }  // empty in kHead and kHeadTooLarge
  bool must_close() const { return must_close_; }    // nothing after this request may be read as another one

  // Whether the client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;

  // The request is complete without its body, which is not wanted: it would be refused whatever the body says.
  void SkipBody();

  // What httplib is to parse: the head and, if there is one, the body. Valid until the reader is destroyed.
  std::string_view head_text() const { return head_text_; }
  std::string_view body_prefix() const { return body_prefix_; }  // framing of a single chunk
  std::string_view body() const { return body_; }
  std::string_view body_suffix() const { return body_suffix_; }

  size_t held_bytes() const { return head_text_.capacity() + body_.capacity() + line_.capacity(); }

 private:
  enum class ChunkPart { kSize, kData, kDataEnd, kTrailer };

  size_t TakeHead(std::string_view bytes);
  size_t TakeLength(std::string_view bytes);
  size_t TakeChunks(std::string_view bytes);
  void ChooseFraming();
  void EndChunkLine();
  void Append(std::string_view bytes, size_t expected);

  const RequestLimits limits_;
  State state_ = State::kHead;
  std::string head_text_;
  RequestHead head_;
  std::string body_;
  std::string body_prefix_, body_suffix_;
  bool must_close_ = false;
  bool chunked_ = false;
  size_t body_left_ = 0;  // of Content-Length, or of the current chunk
  ChunkPart part_ = ChunkPart::kSize;
  std::string line_;  // the current line of a chunk's size or of a trailer
  size_t trailer_bytes_ = 0;
};

}  // namespace outrider
