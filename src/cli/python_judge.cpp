#include "cli/python_judge.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/python.h"

namespace rodeo::cli {

Result<PythonJudge> PythonJudge::start(const std::string& function, const std::vector<std::string>& files) {
  const std::string file =
      function.substr(0, function.rfind(".py:") == std::string::npos ? std::string::npos : function.rfind(".py:") + 3);
  if (std::error_code unknown; !std::filesystem::is_regular_file(file, unknown)) {
    return std::unexpected(Error{"data.function", "there is no such Python file", file,
                                 "--python FILE.py[:FUNCTION]; without a name, the function is `keep`"});
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return std::unexpected(Error{"cli.python", std::string("cannot make a pipe: ") + std::strerror(errno)});
  base::UniqueFd answers(ends[0]);
  const base::UniqueFd said(ends[1]);
  const base::UniqueFd names = RODEO_TRY(names_in_memory(files));
  auto process = RODEO_TRY(start_python("rodeo.data_tools.judge", {function}, names.get(), said.get()));
  return PythonJudge(std::move(process), std::move(answers));
}

Result<bool> PythonJudge::next() {
  while (at_ == end_) {
    const ssize_t n = ::read(answers_.get(), read_.data(), read_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int status = process_.wait();
      return std::unexpected(Error{"data.function",
                                   status == 0 ? "the Python function saw fewer events than there are"
                                               : "the Python function failed; what it said stands above",
                                   {},
                                   "the whole traceback: --log debug"});
    }
    at_ = 0;
    end_ = static_cast<std::size_t>(n);
  }
  return read_[at_++] == '1';
}

}  // namespace rodeo::cli
