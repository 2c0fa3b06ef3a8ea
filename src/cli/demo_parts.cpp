#include "cli/demo_parts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/mapped_file.h"
#include "base/sentence.h"
#include "base/units.h"
#include "storage/file_verify.h"

namespace rodeo::cli {
namespace {

// A chunk needs its header and padded bytes; an event needs a few hundred bytes more.
constexpr double kChunkBytes = 48;
constexpr double kEventBytes = 300;

}  // namespace

double written_fraction(const DemoOptions& options, std::uintmax_t free_bytes) {
  const double event_bytes = static_cast<double>(options.links) * kChunkBytes + kEventBytes;
  const double all = event_bytes * options.rate() * options.seconds;
  const double most = std::min(kMostDemoBytes, static_cast<double>(free_bytes) / 4);
  return all > 0 ? std::clamp(most / all, 0.0, 1.0) : 1.0;
}

DemoCard::DemoCard(std::uint64_t wanted) : links(wanted) {
  const auto process = static_cast<unsigned>(::getpid());
  name = fmt::format("demo-{}", process);
  address = fmt::format("{:04x}:{:02x}:00.0", 0xd000U | (process >> 8 & 0xfffU), process & 0xffU);
  elinks_per_fibre = std::max(kUsualElinks, (links + kMostFibres - 1) / kMostFibres);
  elinks_per_fibre = std::min(elinks_per_fibre, links);
  fibres = (links + elinks_per_fibre - 1) / elinks_per_fibre;
}

std::vector<std::string> DemoCard::emulator_overrides(const DemoOptions& options) const {
  std::vector<std::string> all{fmt::format("emulator.name={}", name),
                               fmt::format("emulator.card[0].address={}", address),
                               fmt::format("emulator.card[0].links={}", fibres),
                               fmt::format("emulator.card[0].elinks_per_link={}", elinks_per_fibre),
                               fmt::format("emulator.card[0].elinks={}", links),
                               fmt::format("emulator.trigger.rate={}", options.rate())};
  for (const std::string& one : options.settings) {
    if (one.starts_with("emulator.")) all.push_back(one);
  }
  return all;
}

Result<FilesReadBack> read_back(const std::vector<std::string>& files, std::uint64_t bytes_written) {
  say("reading the files back ({}) ...\n", base::format_quantity(static_cast<double>(bytes_written), "B"));
  FilesReadBack out;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t missing = 0;
  std::uint64_t removed = 0;
  for (const std::string& file : files) {
    const auto mapped = RODEO_TRY(base::MappedFile::open(file));
    const storage::EventFileReport found = storage::verify_event_file(mapped.bytes());
    RODEO_TRY(mapped.check());
    for (const formats::Finding& finding : found.findings.listed()) {
      say("{}: at byte {}: {}\n", file, finding.offset, finding.what);
    }
    // A chunk that is neither proven nor flagged counts as a finding.
    if (found.totals.proven_chunks + found.totals.flagged_chunks != found.totals.chunks) {
      std::fprintf(
          stderr, "%s: %llu chunks are not provable\n", file.c_str(),
          static_cast<unsigned long long>(found.totals.chunks - found.totals.proven_chunks - found.totals.flagged_chunks));
      ++out.findings;
    }
    out.findings += found.findings.total();
    out.events += found.totals.events;
    chunks += found.totals.proven_chunks;
    bytes += found.bytes;
    missing += found.totals.missing_links;
    removed += found.totals.removed_links;
  }
  out.json = Json::object({{"files", files.size()},
                           {"events", out.events},
                           {"chunks", chunks},
                           {"missing_links", missing},
                           {"removed_links", removed},
                           {"bytes", bytes},
                           {"mismatches", out.findings}});
  say("files read back: {}, {}, {}, {}: {}\n", base::counted(files.size(), "file"), base::counted(out.events, "event"),
      base::counted(chunks, "chunk"), base::format_quantity(static_cast<double>(bytes), "B"),
      out.events == 0     ? "no written event could be verified"
      : out.findings == 0 ? "every byte verified"
                          : base::counted(out.findings, "FINDING"));
  return out;
}

}  // namespace rodeo::cli
