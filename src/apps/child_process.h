// ChildProcess: another program, which runs for as long as this object lives. Its output goes to a file. Ctrl-C at the
// terminal does not reach it, and it does not outlive this process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace outrider {

class ChildProcess {
 public:
  // `arguments`: the program first, searched on the PATH unless it has a slash. Call from the main thread.
  static Result<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& arguments,
                                                     const std::string& log_file);

  // Asks the program to end, and kills it if it has not after ten seconds.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool Running();

  // The last lines of its output.
  std::string LastOutput() const;

  // The peak of its memory so far; -1 if the system does not report it.
  double PeakBytes() const;

 private:
  ChildProcess(pid_t pid, std::string log_file) : pid_(pid), log_file_(std::move(log_file)) {}

  const pid_t pid_;
  const std::string log_file_;
  bool ended_ = false;
};

// A port of the loopback interface that is not in use at the moment.
Result<int> FreePort();

}  // namespace outrider
