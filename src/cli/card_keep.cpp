// `rodeo card keep`: a process that holds real cards open for all other processes (docs/reference/protocols/keeper.md).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "card/pci/found_function.h"
#include "card/pci/function.h"
#include "card/pci/keeper.h"
#include "card/pci/keeper_client.h"
#include "card/pci/sysfs.h"
#include "cli/card.h"

namespace rodeo::cli {
namespace {

namespace pci = card::pci;

struct CardKeepOptions {
  std::string address;
  bool status = false;
  bool stop = false;
  bool let_go = false;
  std::string socket;
  std::string group;
  std::chrono::nanoseconds idle = std::chrono::seconds{30};
  int ready = -1;
  OutputFormat format = OutputFormat::table;
};

Result<ExitCode> show_status(OutputFormat format) {
  const auto status = RODEO_TRY(pci::keeper_status());
  if (format == OutputFormat::json) {
    print((status.empty() ? std::string(R"({"functions":[]})") : status) + "\n");
    return ExitCode::done;
  }
  if (status.empty() && format == OutputFormat::table) {
    say("no keeper runs: no card is held\n");
    return ExitCode::done;
  }
  const auto json = RODEO_TRY_WITHIN(Json::parse(status.empty() ? "{}" : status), "the keeper's status");
  Table table({{"card", "address"},
               {"through", "back_end"},
               {"kept", "kept"},
               {"process", "pid"},
               {"user", "uid"},
               {"memory [MiB]", "mapped_bytes"}});
  for (const Json& one : member(json, "functions").elements()) {
    std::vector<Json> clients = member(one, "clients").elements();
    if (clients.empty()) clients.push_back(Json::object());
    for (const Json& client : clients) {
      const Json& bytes = member(client, "mapped_bytes");
      table.add_row({member(one, "address"), member(one, "back_end"), member(one, "kept"), member(client, "pid"),
                     member(client, "uid"),
                     Cell(bytes, bytes.is_null() ? "" : fmt::format("{:.1f}", bytes.number() / (1 << 20)))});
    }
  }
  table.print(format);
  return ExitCode::done;
}

/// Explains a refusal: the keeper can hold only real cards that exist.
Error why_not_kept(const pci::Address& address, const Error& refusal) {
  if (std::ranges::any_of(pci::emulated_functions(), [&](const auto& one) { return one.address == address; }))
    return {"card.wrong_type", "an emulated card stays open without the keeper, which is for real cards", address.text(),
            ""};
  if (const auto found = pci::find_function(address); !found) return found.error();
  return refusal;
}

Result<ExitCode> keep(const CardKeepOptions& options) {
  if (options.let_go && options.address.empty())
    return usage_error("--let-go needs a card", "rodeo card keep --let-go ADDRESS");
  if (options.status) return show_status(options.format);
  if (options.stop) {
    const auto stopped = RODEO_TRY(pci::stop_keeper());
    if (!stopped) std::fputs("no keeper runs\n", stderr);
    return ExitCode::done;
  }
  if (!options.address.empty()) {
    const auto address = RODEO_TRY(pci::Address::parse(options.address));
    if (const auto done = pci::keep_function(address, !options.let_go); !done)
      return std::unexpected(why_not_kept(address, done.error()));
    return ExitCode::done;
  }
  pci::KeeperSettings settings;
  settings.socket = options.socket;
  settings.group = options.group;
  settings.idle = std::chrono::ceil<std::chrono::seconds>(options.idle);
  settings.ready = options.ready;
  RODEO_TRY(pci::run_keeper(settings));
  return ExitCode::done;
}

}  // namespace

void add_card_keep(Command& card) {
  auto options = std::make_shared<CardKeepOptions>();
  Command& verb = card.verb("keep", "Holds real cards open for all other programs; starts automatically when needed");
  verb.example("sudo rodeo card keep --group daq --idle 1h", "a keeper that members of the group daq may use");
  verb.example("rodeo card keep 3b:00.0", "the card keeps its configuration when no program uses it");
  verb.example("rodeo card keep --status", "held cards, their users and their mapped memory");
  verb.paragraph(
      "The kernel gives a real card to one process, and may reset the card when that process ends. The keeper is that "
      "process: commands get the card from it, run side by side, and their configuration stays in the card. When a program "
      "ends, the keeper removes the memory that the program gave to the card.");
  verb.option("ADDRESS", options->address, "The running keeper keeps this card open and configured").value_name("ADDRESS");
  verb.flag("--let-go", options->let_go, "The keeper may close the card");
  verb.flag("--status", options->status, "Show what the keeper holds");
  verb.flag("--stop", options->stop, "End the keeper; refused while memory is mapped for a card");
  verb.option("--socket", options->socket, "Path of the keeper's socket; programs find it through RODEO_KEEPER_SOCKET")
      .value_name("PATH");
  verb.option("--group", options->group, "Group that may use the cards, besides root; `rodeo` if that group exists")
      .value_name("GROUP");
  verb.duration("--idle", options->idle, "End after this time without connections and kept cards");
  verb.option("--ready", options->ready, "Descriptor to write to when the keeper listens").value_name("FD");
  verb.output(options->format);
  verb.run([options] { return keep(*options); });
}

}  // namespace rodeo::cli
