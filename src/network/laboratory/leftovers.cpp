#include "network/laboratory/leftovers.h"

#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace rodeo::network::laboratory {

namespace {

/// Field 22 of /proc/PID/stat, counted from the last parenthesis because the name in field 2 may hold any text. Empty if
/// there is no such field.
std::string start_time(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos) return {};
  std::istringstream words(text.substr(close + 1));
  std::string word;
  for (int field = 3; field <= 22; ++field) words >> word;
  return word;
}

std::string mark_in_environment(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/environ");
  std::string variable;
  while (std::getline(file, variable, '\0')) {
    if (variable.starts_with(kRunVariable) && variable.substr(kRunVariable.size()).starts_with('='))
      return variable.substr(kRunVariable.size() + 1);
  }
  return {};
}

}  // namespace

std::string run_mark() {
  const std::string pid = std::to_string(getpid());
  return pid + "." + start_time(pid);
}

std::size_t end_leftovers() {
  std::size_t ended = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc", std::filesystem::directory_options::skip_permission_denied, ignored)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (read.ec != std::errc{} || read.ptr != name.data() + name.size() || pid == getpid()) continue;
    const std::string mark = mark_in_environment(name);
    const std::size_t dot = mark.find('.');
    if (dot == std::string::npos || start_time(mark.substr(0, dot)) == mark.substr(dot + 1))
      continue;  // the laboratory of this process is alive
    if (kill(pid, SIGKILL) == 0) ++ended;
  }
  return ended;
}

}  // namespace rodeo::network::laboratory
