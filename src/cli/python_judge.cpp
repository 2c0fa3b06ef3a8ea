#include "cli/python_judge.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "cli/codes.h"
#include "cli/python.h"

namespace rodeo::cli {

using storage::Wanted;

namespace {

constexpr std::int64_t kMostPollMs = 1'000'000'000;

/// The error for a Python process that ended before the last event, from its exit status.
Error ended(int status) {
  Error error{"data.function", "the Python function failed; see its message above", {}, "the whole traceback: --log debug"};
  if (status == 0) error.what = "the Python function saw fewer events than there are";
  if (status > 128) {
    const int signal = status - 128;
    error.what = fmt::format("the Python function ended its process: signal {} ({})", signal, ::strsignal(signal));
    error.next = "usually code outside Python crashed; leave out parts of the function to find it";
  } else if (status != 0 && status != static_cast<int>(ExitCode::failed) && status != static_cast<int>(ExitCode::usage)) {
    error.what = fmt::format("the Python function ended its process: exit status {}", status);
    error.next = "a function returns True or False; it does not call os._exit()";
  }
  return error;
}

}  // namespace

Result<PythonJudge> PythonJudge::start(const std::string& function, const std::vector<std::string>& files,
                                       std::chrono::nanoseconds hang) {
  const std::string file =
      function.substr(0, function.rfind(".py:") == std::string::npos ? std::string::npos : function.rfind(".py:") + 3);
  if (std::error_code unknown; !std::filesystem::is_regular_file(file, unknown)) {
    return std::unexpected(Error{"data.function", "there is no such Python file", file,
                                 "--python FILE.py[:FUNCTION]; without a name, the function is `keep`"});
  }
  auto [answers, said] = RODEO_TRY(base::make_pipe());
  const base::UniqueFd names = RODEO_TRY(names_in_memory(files));
  auto process = RODEO_TRY(start_python("rodeo.data_tools.judge",
                                        {function, fmt::format("{}", std::chrono::duration<double>(hang).count())},
                                        names.get(), said.get()));
  return PythonJudge(std::move(process), std::move(answers), hang);
}

Result<Wanted> PythonJudge::next() {
  for (; at_ == end_ || read_[at_] == 'r'; ++at_) {  // 'r': the function is loaded and ready
    if (at_ == end_) RODEO_TRY(read_more());
    if (read_[at_] != 'r') break;
    began_ = true;
  }
  switch (read_[at_++]) {
    case '1': return Wanted::yes;
    case '0': return Wanted::no;
    default: return Wanted::timed_out;
  }
}

Result<void> PythonJudge::read_more() {
  // Python itself ends a function that takes too long, and sends its answers twice a second. It cannot interrupt code
  // outside Python.
  const auto patience = std::chrono::ceil<std::chrono::milliseconds>(2 * hang_ + std::chrono::seconds(10));
  while (true) {
    pollfd waits{.fd = answers_.get(), .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&waits, 1, began_ ? static_cast<int>(std::min<std::int64_t>(patience.count(), kMostPollMs)) : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      process_.signal(SIGKILL);
      return std::unexpected(Error{"data.function",
                                   "the Python function hangs, in code that Python cannot interrupt",
                                   {},
                                   "--hang TIME gives it more time"});
    }
    const ssize_t n = ::read(answers_.get(), read_.data(), read_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return std::unexpected(ended(process_.wait()));
    }
    at_ = 0;
    end_ = static_cast<std::size_t>(n);
    return {};
  }
}

}  // namespace rodeo::cli
