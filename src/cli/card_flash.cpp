// `rodeo card flash`: the firmware in a C-RORC's flash memory (flash and flash-read of ReadoutCard, same text files: a word
// a line).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "card/operations/flash.h"
#include "cli/card.h"
#include "process/stop_signals.h"

namespace rodeo::cli {
namespace {

struct CardFlashOptions {
  std::string id;
  std::string file;
  std::string address = "0";
  std::uint64_t words = 16;
  OutputFormat format = OutputFormat::table;
};

Result<std::uint32_t> address_of(const std::string& text) {
  const auto value = card::parse_number(text);
  if (value && *value <= UINT32_MAX) return static_cast<std::uint32_t>(*value);
  return value_error("`" + text + "` is not an address: give a number of 16-bit words, decimal or 0x...",
                     "for example 0x470000");
}

constexpr std::size_t kLongestLine = 41;  // longer than any number of 16 bits
constexpr std::size_t kMostWords = std::size_t{1} << 24;

std::string printable(std::string_view text) {
  std::string shown(text);
  std::ranges::replace_if(shown, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return shown;
}

Result<std::vector<std::uint16_t>> read_words(const std::string& name) {
  std::ifstream file(name);
  if (!file)
    return std::unexpected(Error{"cli.bad_value", "cannot read the file", name, "is the name right, and may you read it?"});
  std::vector<std::uint16_t> words;
  std::uint64_t number = 0;
  char line[kLongestLine];
  while (file.getline(line, sizeof line) || file.gcount() > 0) {
    ++number;
    const auto value = file.fail() ? std::nullopt : card::parse_number(line);
    if (!value || *value > 0xffff)
      return std::unexpected(Error{"cli.bad_value", fmt::format("`{}` is not a word of 16 bits", printable(line)),
                                   fmt::format("{}:{}:1", name, number),
                                   "a flash file has one word a line, decimal or 0x..."});
    words.push_back(static_cast<std::uint16_t>(*value));
    if (words.size() > kMostWords)
      return std::unexpected(Error{"cli.bad_value",
                                   fmt::format("the file has more than the {} words of a flash", kMostWords), name,
                                   "is it the right file?"});
  }
  if (words.empty())
    return std::unexpected(Error{"cli.bad_value", "the file has no words", name, "one word a line, decimal or 0x..."});
  return words;
}

card::FlashProgress progress(const process::StopSignals& signals) {
  return [&signals](std::uint64_t done, std::uint64_t all) {
    if (isatty(STDERR_FILENO) != 0 && (done % 4096 == 0 || done == all)) {
      say("\r{:5.1f} %{}", 100 * static_cast<double>(done) / static_cast<double>(all), done == all ? "\n" : "");
      std::fflush(stderr);
    }
    return !signals.stop_requested();
  };
}

Result<ExitCode> write(const CardFlashOptions& options) {
  const auto address = RODEO_TRY(address_of(options.address));
  const auto words = RODEO_TRY(read_words(options.file));
  auto card = RODEO_TRY(open_card(options.id));
  const process::StopSignals signals;
  const auto report = RODEO_TRY(card::write_flash(*card, address, words, progress(signals)));
  Properties properties;
  properties.add("words", "words", words.size());
  properties.add("blocks", "blocks", report.blocks);
  properties.add("blocks that differed and were written", "blocks_written", report.blocks_written);
  properties.print(options.format);
  return ExitCode::done;
}

Result<ExitCode> read(const CardFlashOptions& options) {
  const auto address = RODEO_TRY(address_of(options.address));
  auto card = RODEO_TRY(open_card(options.id));
  const process::StopSignals signals;
  const auto words = RODEO_TRY(card::read_flash(*card, address, options.words, progress(signals)));
  if (!options.file.empty()) {
    std::string text;
    for (const std::uint16_t word : words) text += fmt::format("{}\n", word);
    RODEO_TRY(write_text(options.file, text));
    return ExitCode::done;
  }
  Table table({{"address", "address_words"}, {"hex", "hex"}, {"decimal", "value"}});
  for (std::size_t i = 0; i < words.size(); ++i)
    table.add_row(
        {Cell(address + i, fmt::format("{:#08x}", address + i)), Cell(fmt::format("{:#06x}", words[i])), Cell(words[i])});
  table.print(options.format);
  return ExitCode::done;
}

}  // namespace

void add_card_flash(Command& card) {
  auto options = std::make_shared<CardFlashOptions>();
  Command& flash = card.verb("flash", "The firmware in a C-RORC's flash memory");
  Command& writes = flash.verb("write", "Writes the blocks that differ, and reads them back");
  writes.example("rodeo card flash write firmware.txt --id '#0'", "one 16-bit word a line");
  writes.option("FILE", options->file, "One word a line, decimal or 0x...").required();
  add_card_id(writes, options->id);
  writes.option("--address", options->address, "First word; the start of a block of 65536 words").value_name("ADDRESS");
  writes.output(options->format);
  writes.run([options] { return write(*options); });

  Command& reads = flash.verb("read", "Reads words");
  reads.example("rodeo card flash read --id '#0' --address 0x470000 --words 32", "");
  add_card_id(reads, options->id);
  reads.option("--address", options->address, "First word").value_name("ADDRESS");
  reads.option("--words", options->words, "How many");
  reads.option("--file", options->file, "Write the words to this file, one a line, as `flash write` reads them")
      .value_name("FILE");
  reads.output(options->format);
  reads.run([options] { return read(*options); });
}

}  // namespace rodeo::cli
