// The `rodeo` command of the Python wheel, for event files only. The Debian package has the whole command.
#include <fmt/format.h>

#include "cli/data.h"
#include "cli/verbs.h"

namespace rodeo::cli {
namespace {

/// Adds `explain` for the error codes of this command.
void add_codes(Command& root) {
  auto code = std::make_shared<std::string>();
  Command& verb = root.verb("explain", "Long help on an error code");
  verb.option("CODE", *code, "Error code, as in an error message").required();
  verb.run([code]() -> Result<ExitCode> {
    const ErrorCode* found = find_error_code(*code);
    if (found == nullptr) return std::unexpected(Error{"cli.unknown_name", fmt::format("unknown error code `{}`", *code)});
    print(fmt::format("{}    exit status {}\n\n  {}\n", found->code, static_cast<int>(found->exit), found->text));
    return ExitCode::done;
  });
}

}  // namespace

/// Recording needs the inputs of the whole command.
void add_data_record(Command& /*data*/) {}

}  // namespace rodeo::cli

int main(int argc, char** argv) {
  using namespace rodeo::cli;
  Command root("rodeo", "Rodeo's tools for event files; readout, cards and the control room come with the Debian package.");
  add_data(root);
  add_codes(root);
  add_docs(root);
  add_version(root);
  return run_command(root, argc, argv);
}
