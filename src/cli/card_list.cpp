// `rodeo card list`: the cards of this host.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/runtime_dir.h"
#include "cli/card.h"

namespace rodeo::cli {
namespace {

struct CardListOptions {
  std::optional<std::chrono::nanoseconds> watch;
  OutputFormat format = OutputFormat::table;
};

std::string_view name_of(card::pci::BackEnd back_end) {
  switch (back_end) {
    case card::pci::BackEnd::vfio: return "vfio";
    case card::pci::BackEnd::vfio_user: return "vfio-user";
    case card::pci::BackEnd::uio: return "uio";
  }
  return "?";
}

Cell hash_cell(const std::optional<std::uint32_t>& hash) {
  return hash ? Cell(card::hash_text(*hash)) : Cell(Json(), "-", Style::faint);
}

Result<ExitCode> fill(Table& table) {
  ExitCode outcome = card::pci::look_for_emulated_functions() ? ExitCode::done : ExitCode::partial;
  const auto entries = card::list_cards();
  // --id takes numbers only while the type of every card is known.
  const bool numbered = std::ranges::none_of(entries, [](const card::CardEntry& entry) { return entry.silent; });
  for (const card::CardEntry& entry : entries) {
    const std::string& problem = entry.problem.empty() ? entry.function.problem : entry.problem;
    if (!problem.empty()) outcome = ExitCode::partial;
    table.add_row({numbered ? Cell(entry.sequence, fmt::format("#{}", entry.sequence)) : Cell(Json(), "-", Style::faint),
                   Cell(card::name_of(entry.type)), Cell(entry.function.address.text()), serial_cell(entry.identity.serial),
                   optional_cell(entry.identity.endpoint),
                   entry.function.numa_node < 0 ? Cell(Json(), "-", Style::faint) : Cell(entry.function.numa_node),
                   hash_cell(entry.identity.firmware_hash), hash_cell(entry.identity.user_logic_hash),
                   Cell(name_of(entry.function.back_end)), Cell(problem.empty() ? entry.note : problem, {}, Style::bad)});
  }
  return outcome;
}

/// Reports a runtime directory that cannot hold emulated cards: otherwise a misspelt directory looks like one without
/// cards.
void say_if_there_is_no_directory() {
  const std::filesystem::path directory = base::runtime_directory_name();
  std::error_code failure;
  const auto status = std::filesystem::status(directory, failure);
  if (std::filesystem::is_directory(status) || failure == std::errc::permission_denied) return;
  const bool named = std::getenv("RODEO_RUNTIME_DIR") != nullptr;
  if (std::filesystem::exists(status)) {
    say("no emulated cards: the runtime directory {} is not a directory\n", directory.native());
  } else if (named) {
    say("no emulated cards: there is no runtime directory {}\n", directory.native());
  }
}

}  // namespace

void add_card_list(Command& card) {
  auto options = std::make_shared<CardListOptions>();
  Command& verb = card.verb("list", "Lists the cards of this host, including emulated ones");
  verb.example("rodeo card list", "the number after # works with --id")
      .example("rodeo card list -o json", "for programs")
      .paragraph(
          "A card that does not answer is listed with the reason; the exit status is then 6. If its type is not known, no "
          "card has a number, because cards are numbered by type.");
  add_watch(verb, options->watch);
  verb.output(options->format);
  verb.run([options] {
    say_if_there_is_no_directory();
    if (const auto looked = card::pci::look_for_emulated_functions(); !looked) print_error(looked.error());
    return print_or_watch({{"#", "sequence"},
                           {"type", "type"},
                           {"PCI address", "pci_address"},
                           {"serial", "serial"},
                           {"endpoint", "endpoint"},
                           {"NUMA node", "numa_node"},
                           {"firmware", "firmware"},
                           {"user logic", "user_logic_version"},
                           {"through", "back_end"},
                           {"problem", "problem"}},
                          options->format, options->watch, fill);
  });
}

}  // namespace rodeo::cli
