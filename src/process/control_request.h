// Requests and answers on a control socket, as lines of JSON (docs/reference/protocols/control.md). All processes with a
// socket use it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "process/kinds.h"
#include "settings/json.h"

namespace rodeo::process {

using settings::Json;

/// {"ok": false, ...}
std::string refusal(const Error& error);
/// {"ok": true, "reply": value}
std::string reply(Json value);

/// The answer to one line, which may hold any bytes: the result of `answer`, or a refusal if the line is not JSON
/// (config.bad_json) or if `answer` throws (the code of a SetupError, else process.failed). Throws only if there is no
/// memory for the refusal itself.
std::string answer_line(const std::string& line, const std::function<std::string(const Json& request)>& answer);

/// A member as text; empty if the object has no such member.
std::string text_of(const Json& object, std::string_view key);

/// Sends a request to the process of this name. An empty name means the only running process of this kind. Errors:
/// process.unreachable, process.which_KIND, and the code of the process if it refuses. Waits at most five seconds.
Result<Json> ask_process(const ProcessKind& kind, const std::string& name, const Json& request);

}  // namespace rodeo::process
