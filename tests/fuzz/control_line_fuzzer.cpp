// A line on a control socket and its JSON: any bytes are answered, and the value equals that of the library itself.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "fuzz/check.h"
#include "process/control_request.h"

namespace {

using rodeo::settings::Json;

/// How deep the library's own value is nested.
std::size_t depth_of(const nlohmann::ordered_json& value) {
  if (!value.is_structured()) return 0;
  std::size_t deepest = 0;
  for (const auto& member : value) deepest = std::max(deepest, depth_of(member));
  return deepest + 1;
}

void use(const Json& value) {
  FUZZ_CHECK(value.elements().empty() || value.is_array());
  FUZZ_CHECK(value.string().empty() || value.is_string());
  (void)value.number();
  (void)value.signed_integer();
  (void)value.unsigned_integer();
  for (const Json& element : value.elements()) use(element);
  for (const auto& [key, member] : value.members()) {
    FUZZ_CHECK(value.find(key) == &member);
    use(member);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;  // the twin below recurses to the depth of the text
  const std::string line(reinterpret_cast<const char*>(data), size);
  const auto parsed = Json::parse(line);
  const auto twin = nlohmann::ordered_json::parse(line, nullptr, false);
  const bool has_nul = line.find('\0') != std::string::npos;  // the library stops reading at a NUL
  FUZZ_CHECK(parsed.has_value() == (!twin.is_discarded() && !has_nul && depth_of(twin) <= Json::kDeepest));
  if (parsed) {
    FUZZ_CHECK(parsed->dump(0) == twin.dump());
    FUZZ_CHECK(Json::parse(parsed->dump())->dump(0) == twin.dump());
    use(*parsed);
  } else {
    FUZZ_CHECK(parsed.error().code == "config.bad_json" && !parsed.error().where.empty());
  }
  const auto answer = Json::parse(rodeo::process::answer_line(line, [](const Json& request) {
    const std::string command = rodeo::process::text_of(request, "command");
    return command.empty() ? rodeo::process::refusal({"process.unknown_command", command, "", ""})
                           : rodeo::process::reply(request);
  }));
  FUZZ_CHECK(answer.has_value() && answer->find("ok") != nullptr);
  if (!parsed) FUZZ_CHECK(rodeo::process::text_of(*answer, "code") == "config.bad_json");
  return 0;
}
