#include "cli/codes.h"

#include <algorithm>
#include <vector>

#include "cli/texts.h"
#include "cli/vocabulary.h"

namespace rodeo::cli {

std::span<const ErrorCode> error_codes() {
  static const std::vector<ErrorCode> codes = [] {
    std::vector<ErrorCode> list;
    for (Word& one : words_of(built_in_text("error_codes.md"))) {
      const bool says = one.unit.starts_with("exit ") && one.unit.size() == 6;
      list.push_back({std::move(one.word), says ? static_cast<ExitCode>(one.unit.back() - '0') : ExitCode::failed,
                      std::move(one.text)});
    }
    return list;
  }();
  return codes;
}

const ErrorCode* find_error_code(std::string_view code) {
  const auto codes = error_codes();
  const auto found = std::ranges::find(codes, code, &ErrorCode::code);
  return found != codes.end() ? &*found : nullptr;
}

ExitCode exit_code_of(std::string_view code) {
  const ErrorCode* entry = find_error_code(code);
  return entry == nullptr ? ExitCode::failed : entry->exit;
}

}  // namespace rodeo::cli
