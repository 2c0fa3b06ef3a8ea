// The `rodeo` command: gathers the nouns and runs what is asked for.
#include "bench/card/verbs.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  using namespace rodeo::cli;
  Command root("rodeo", "Rodeo: software readout for physics experiments, from detector links to verified event files.");
  add_bench(root);
  rodeo::bench::add_card_bench(add_card(root));
  add_check(root);
  add_completion(root);
  add_control(root);
  add_data(root);
  add_demo(root);
  add_docs(root);
  add_doctor(root);
  add_emulate(root);
  add_events(root);
  add_explain(root);
  add_farm(root);
  add_man(root);
  add_net(root);
  add_plugin(root);
  add_readout(root);
  add_route(root);
  add_runs(root);
  add_top(root);
  add_version(root);
  return run_command(root, argc, argv);
}
