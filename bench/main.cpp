// The program rodeo-bench, which `rodeo bench` starts with its own arguments. `rodeo-bench describe` writes the tree of
// verbs for completion and manual pages.
#include <string_view>

#include "bench/bench.h"
#include "cli/described_verbs.h"

int main(int argc, char** argv) {
  using namespace rodeo::cli;
  Command root("rodeo", "Rodeo: software readout for physics experiments, from detector links to verified event files.");
  rodeo::bench::add_bench(root);
  if (argc == 2 && std::string_view(argv[1]) == "describe") {
    fmt::print("{}\n", described(*root.verbs().front()).dump());
    return 0;
  }
  return run_command(root, argc, argv);
}
