// ChildProcess: another program, for as long as this object lives. Its output goes to a file. A Ctrl-C at the terminal
// is not for it, and it does not outlive this process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace outrider {

class ChildProcess {
 public:
  // `arguments`: the program first, found on the PATH unless it has a slash. Call from the main thread.
  static Result<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& arguments,
                                                     const std::string& log_file);

  // Asks it to end, and makes it after a while.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool Running();

  // The last lines of its output.
  std::string Complaint() const;

  // The most memory it has had at a time, so far; -1 if that cannot be told.
  double PeakBytes() const;

 private:
  ChildProcess(pid_t pid, std::string log_file) : pid_(pid), log_file_(std::move(log_file)) {}

  const pid_t pid_;
  const std::string log_file_;
  bool ended_ = false;
};

// A port of the loopback interface that nobody uses at the moment.
Result<int> FreePort();

// The words of a command line; quotes keep spaces, as in a shell. kInvalidArgument if a quote is not closed.
Result<std::vector<std::string>> SplitWords(const std::string& line);

}  // namespace outrider
