// `rodeo control` and `rodeo runs`: the control room and its runs, implemented in Python (python/rodeo/control/).
#include "cli/described_verbs.h"
#include "cli/python.h"
#include "cli/verbs.h"

namespace rodeo::cli {
namespace {

void add_python_noun(Command& root, const char* name, const char* help, const char* module) {
  auto rest = std::make_shared<std::vector<std::string>>();
  Command& noun = root.verb(name, help);
  noun.passes_on(*rest);
  noun.described_by([name](Command& one) { describe_python_noun(one, name); });
  noun.run([rest, module]() -> Result<ExitCode> { return std::unexpected(become_python(module, *rest)); });
}

}  // namespace

void add_control(Command& root) {
  add_python_noun(root, "control", "The control room of a system of processes: page, runs, alarms",
                  "rodeo.control.cli.verbs");
}

void add_runs(Command& root) {
  add_python_noun(root, "runs", "The run database: list, show, compare, export", "rodeo.control.cli.runs_verbs");
}

}  // namespace rodeo::cli
