// `rodeo card reg`: single registers, by declared name or byte address (reg-read, reg-write, reg-modify and reg-read-range
// of ReadoutCard).
#include <fmt/format.h>

#include "card/pci/lock.h"
#include "cli/card.h"

namespace rodeo::cli {
namespace {

using card::RegisterTarget;
using card_registers::Access;

struct CardRegOptions {
  std::string id;
  std::optional<unsigned> bar;
  std::vector<std::string> names;
  std::string name;
  std::string value;
  std::string address;
  std::optional<std::uint64_t> words;
  std::string file;
  unsigned position = 0;
  unsigned width = 1;
  bool no_read_back = false;
  bool force = false;
  std::optional<std::chrono::nanoseconds> watch;
  OutputFormat format = OutputFormat::table;
};

const std::vector<Column> kColumns{{"BAR", "bar"}, {"address", "address_bytes"}, {"register", "name"},
                                   {"hex", "hex"}, {"binary", "binary"},         {"decimal", "value"}};

std::string nibbles(std::uint64_t value, unsigned bits) {
  std::string text;
  for (unsigned bit = bits; bit-- > 0;) {
    text += (value >> bit & 1) != 0 ? '1' : '0';
    if (bit != 0 && bit % 4 == 0) text += bit % 16 == 0 ? ' ' : '.';
  }
  return text;
}

void add_value(Table& table, const RegisterTarget& target, std::uint64_t value) {
  table.add_row({target.bar, Cell(target.offset, fmt::format("{:#08x}", target.offset)), Cell(target.name()),
                 Cell(fmt::format("{:#0{}x}", value, 2 + 2 * target.width_bytes)),
                 Cell(nibbles(value, 8 * target.width_bytes)), Cell(value)});
}

Result<std::uint64_t> read(card::Card& card, const RegisterTarget& target) {
  auto value = card::read_register(card, target);
  if (!value && !target.name().empty()) return std::unexpected(value.error().within(target.name()));
  return value;
}

Result<std::uint64_t> value_of(const std::string& text) {
  if (const auto value = card::parse_number(text)) return *value;
  return value_error("`" + text + "` is not a number", "values are decimal, or hexadecimal with 0x");
}

Result<ExitCode> show_written(card::Card& card, const CardRegOptions& options, const RegisterTarget& target,
                              std::uint64_t written) {
  // Reading a command register or a FIFO may have side effects.
  const bool reads_back = !options.no_read_back && (target.description == nullptr || target.harmless_to_read());
  Table table(kColumns);
  if (reads_back) written = RODEO_TRY(read(card, target));
  add_value(table, target, written);
  table.print(options.format);
  return ExitCode::done;
}

Result<ExitCode> read_registers(const CardRegOptions& options) {
  const auto card = RODEO_TRY(open_card(options.id));
  std::vector<RegisterTarget> targets;
  for (const std::string& name : options.names)
    targets.push_back(RODEO_TRY(card::find_register(register_space(*card), name, options.bar)));
  return print_or_watch(kColumns, options.format, options.watch, [&](Table& table) -> Result<ExitCode> {
    for (const RegisterTarget& target : targets) {
      const auto value = RODEO_TRY(read(*card, target));
      add_value(table, target, value);
    }
    return ExitCode::done;
  });
}

Result<ExitCode> write_one(const CardRegOptions& options) {
  const auto value = RODEO_TRY(value_of(options.value));
  const auto card = RODEO_TRY(open_card(options.id));
  const auto target = RODEO_TRY(card::find_register(register_space(*card), options.name, options.bar));
  RODEO_TRY(card::write_register(*card, target, value, options.force));
  return show_written(*card, options, target, value);
}

Result<ExitCode> modify_one(const CardRegOptions& options) {
  const auto bits = RODEO_TRY(value_of(options.value));
  const auto card = RODEO_TRY(open_card(options.id));
  const auto target = RODEO_TRY(card::find_register(register_space(*card), options.name, options.bar));
  const std::uint64_t written =
      RODEO_TRY(card::modify_register(*card, target, options.position, options.width, bits, options.force));
  return show_written(*card, options, target, written);
}

/// The registers that can be read without side effects, one row each.
Result<std::vector<RegisterTarget>> declared_targets(const card::Card& card, std::optional<unsigned> bar) {
  std::vector<RegisterTarget> targets;
  const bool every = card.type() == card::CardType::crorc;
  for (const card_registers::Register& known : card.map().registers()) {
    if (!every && bar && known.bar != *bar) continue;
    for (std::uint32_t index = 0; index < known.total(); ++index) {
      const RegisterTarget target{every ? bar.value_or(0) : known.bar, known.at(index), known.width_bytes, &known, index};
      if (target.harmless_to_read()) targets.push_back(target);
    }
  }
  return targets;
}

Result<std::vector<RegisterTarget>> raw_targets(card::Card& card, const CardRegOptions& options) {
  if (!options.bar) return usage_error("--address needs --bar", "--bar 2 --address 0x10000 --words 16");
  auto first = RODEO_TRY(card::find_register(register_space(card), options.address, options.bar));
  if (card::parse_number(options.address) == std::nullopt) return std::vector<RegisterTarget>{first};
  const std::uint64_t words = options.words.value_or(1);
  if (words == 0) return value_error("--words 0 reads nothing", "1 or more; left out: one word");
  const auto bar = RODEO_TRY(card.bar(first.bar));
  if (const std::uint64_t room = (bar->bytes() - std::min<std::uint64_t>(first.offset, bar->bytes())) / first.width_bytes;
      words > room)
    return std::unexpected(Error{"card.bad_access",
                                 fmt::format("{} words from {:#x} reach beyond the {:#x} bytes of BAR {}", words,
                                             first.offset, bar->bytes(), first.bar),
                                 card.address().text(), fmt::format("it has {} from there", room)});
  std::vector<RegisterTarget> targets;
  targets.reserve(words);
  for (std::uint64_t word = 0; word < words; ++word) {
    RegisterTarget target = first;
    target.offset = static_cast<std::uint32_t>(first.offset + word * first.width_bytes);
    const auto known = card.map().at(card.type() == card::CardType::crorc ? 0 : target.bar, target.offset);
    target.description = known ? known->description : nullptr;
    target.index = known ? known->index : 0;
    targets.push_back(target);
  }
  return targets;
}

Result<ExitCode> dump(const CardRegOptions& options) {
  if (options.words && options.address.empty())
    return usage_error("--words needs --address", "--bar 2 --address 0x10000 --words 16");
  const auto card = RODEO_TRY(open_card(options.id));
  const auto targets =
      RODEO_TRY(options.address.empty() ? declared_targets(*card, options.bar) : raw_targets(*card, options));
  Table table(kColumns);
  std::string bytes;
  for (const RegisterTarget& target : targets) {
    const auto value = RODEO_TRY(read(*card, target));
    add_value(table, target, value);
    for (unsigned byte = 0; byte < target.width_bytes; ++byte) bytes += static_cast<char>(value >> 8 * byte);
  }
  if (options.file.empty()) {
    table.print(options.format);
    return ExitCode::done;
  }
  RODEO_TRY(write_text(options.file, bytes));
  return ExitCode::done;
}

Result<ExitCode> list(const CardRegOptions& options) {
  const auto card = RODEO_TRY(open_card(options.id));
  Table table({{"BAR", "bar"},
               {"address", "address_bytes"},
               {"register", "name"},
               {"places", "count"},
               {"bits", "width_bits"},
               {"access", "access"},
               {"", "help"}});
  const auto word = [](Access access) {
    switch (access) {
      case Access::read: return "read";
      case Access::write: return "write";
      case Access::read_write: return "read write";
      case Access::command: return "command";
    }
    return "?";
  };
  for (const card_registers::Register& known : card->map().registers()) {
    table.add_row({known.bar, Cell(known.offset, fmt::format("{:#08x}", known.offset)), Cell(known.name), known.total(),
                   8 * known.width_bytes, Cell(word(known.access)), Cell(known.help)});
  }
  table.print(options.format);
  return ExitCode::done;
}

void add_bar(Command& verb, CardRegOptions& options) {
  verb.option("--bar,--channel", options.bar, "BAR; with names, needed only if several BARs have the register (C-RORC)");
}

}  // namespace

void add_card_reg(Command& card) {
  auto options = std::make_shared<CardRegOptions>();
  Command& reg = card.verb("reg", "Registers by name or byte address");

  Command& read = reg.verb("read", "Reads registers");
  read.example("rodeo card reg read --id '#0' temperature 'gbt_link_rx_hz[3]'", "by name")
      .example("rodeo card reg read --id '#0' --bar 2 0x10008", "by byte address")
      .example("rodeo card reg read --id '#0' superpages_done[0] --watch 1s -o json", "a line a second");
  add_card_id(read, options->id);
  add_bar(read, *options);
  read.option("REGISTER", options->names, "Name, name[index], or byte address").required();
  add_watch(read, options->watch);
  read.output(options->format);
  read.run([options] { return read_registers(*options); });

  Command& write = reg.verb("write", "Writes a register and reads it back");
  write.example("rodeo card reg write --id '#0' ctp_bc_max 3563", "by name")
      .example("rodeo card reg write --id '#0' --bar 2 0x280004 0xdeb", "by byte address");
  add_card_id(write, options->id);
  add_bar(write, *options);
  write.option("REGISTER", options->name, "Name, name[index], or byte address").required();
  write.option("VALUE", options->value, "Decimal or 0x...").required();
  write.flag("--no-read-back", options->no_read_back,
             "Do not read the register afterwards; commands and FIFOs are never read back");
  write.flag("--force", options->force, "Write also registers that the map declares read-only");
  write.output(options->format);
  write.run([options] { return write_one(*options); });

  Command& modify = reg.verb("modify", "Changes some bits of a register; other processes that modify it wait");
  modify.example("rodeo card reg modify --id '#0' user_control 0x2a --position 16 --width 12", "the CRU id");
  add_card_id(modify, options->id);
  add_bar(modify, *options);
  modify.option("REGISTER", options->name, "Name, name[index], or byte address").required();
  modify.option("VALUE", options->value, "Value of the bits; decimal or 0x...").required();
  modify.option("--position", options->position, "Lowest bit");
  modify.option("--width", options->width, "Bits");
  modify.flag("--no-read-back", options->no_read_back, "Do not read the register afterwards");
  modify.flag("--force", options->force, "Write also registers that the map declares read-only");
  modify.output(options->format);
  modify.run([options] { return modify_one(*options); });

  Command& all = reg.verb("dump", "Reads all declared registers, or a range of words");
  all.example("rodeo card reg dump --id '#0'", "all registers that can be read without side effects")
      .example("rodeo card reg dump --id '#0' --bar 2 --address 0x0 --words 64 --file bar2.bin", "raw words, little endian");
  add_card_id(all, options->id);
  add_bar(all, *options);
  all.option("--address", options->address, "First byte address").value_name("ADDRESS");
  all.option("--words,--range", options->words, "Number of words");
  all.option("--file", options->file, "Write the raw words to this file instead of a table").value_name("FILE");
  all.output(options->format);
  all.run([options] { return dump(*options); });

  Command& names = reg.verb("list", "The declared registers of a card");
  add_card_id(names, options->id);
  names.output(options->format);
  names.run([options] { return list(*options); });
}

}  // namespace rodeo::cli
