#include "readout/builder/builder_common.h"

#include <bit>
#include <set>
#include <stdexcept>

#include <fmt/core.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sentence.h"
#include "formats/link_names.h"
#include "readout/extractor/field_extractor.h"

namespace rodeo::readout {

void check_links(const BuilderContext& context, std::uint32_t workers) {
  constexpr std::size_t kMostLinks = 65534;
  if (context.links.empty()) {
    throw SetupError({"readout.no_links", "a ROB has no links", "", "set readout.rob.links, or use an input with links"});
  }
  if (context.links.size() > kMostLinks) {
    throw SetupError({"readout.too_many_links",
                      fmt::format("a ROB has {} links; {} is the most", context.links.size(), kMostLinks), "",
                      "split them over several ROBs"});
  }
  std::set<std::uint32_t> ids;
  for (const BuilderLink& link : context.links) {
    if (!ids.insert(link.link_id).second) {
      throw SetupError(
          {"readout.duplicate_link",
           fmt::format("link id {:#010x} (link {}) occurs twice in one ROB", link.link_id, formats::named_link(link.fid)),
           "", "give each link of the ROB an id of its own"});
    }
  }
  if (workers == 0 || workers > context.links.size()) {
    throw SetupError(
        {"readout.workers",
         fmt::format("{} for {}", base::counted(workers, "worker"), base::counted(context.links.size(), "link")),
         "readout.builder.workers", "use at least one worker and at most one per link (FULL mode: per group)"});
  }
}

void check_memory(std::uint64_t bytes, std::string_view purpose, std::string_view next) {
  check_memory(static_cast<double>(bytes), 0, purpose, next);
}

// Computed in floating point: the product of window, buffers and chunk size may exceed 64 bits.
void check_memory(double objects, double arenas, std::string_view purpose, std::string_view next) {
  const auto available = static_cast<double>(base::available_memory_bytes());
  const double with_huge_pages = available + static_cast<double>(arenas > 0 ? base::free_huge_page_bytes() : 0);
  if (objects <= available && objects + arenas <= with_huge_pages) return;
  constexpr double kMiB = 1 << 20;
  throw SetupError({"base.memory",
                    fmt::format("{}: {:.0f} MiB are wanted, {:.0f} MiB are available", purpose, (objects + arenas) / kMiB,
                                (objects > available ? available : with_huge_pages) / kMiB),
                    "", std::string(next)});
}

Error without_memory(Error error, std::string_view next) {
  error.next = next;
  return error;
}

std::unique_ptr<TriggerList> open_trigger_list(const BuilderContext& context, std::size_t readers, std::size_t entries) {
  auto list = context.input->open_trigger_list();
  if (list == nullptr) {
    throw SetupError({"readout.no_trigger_list", "the input carries no list of triggers (TTC link)",
                      "readout.builder.trigger_list", "use an input with a list, or set trigger_list = false"});
  }
  return std::make_unique<TriggerList>(std::move(list), make_ttc_extractor(), readers, entries);
}

std::optional<Error> refused_by_list(const TriggerFields& fields) {
  if (fields.l1id_bits <= 24) return std::nullopt;
  return Error{"readout.wide_ids_listed",
               fmt::format("a counter of {} bits without resets does not fit a trigger list, whose L1 ids of 24 bits begin "
                           "anew at each reset",
                           fields.l1id_bits),
               "readout.builder.trigger_list", "set trigger_list = false, or extract ids of 24 bits or fewer"};
}

Sequencer::Settings sequencing(const TriggerFields& fields, std::uint64_t window, std::uint32_t step,
                               std::size_t group_links, std::chrono::nanoseconds timeout, bool trigger_list) {
  if (trigger_list) {
    if (auto refused = refused_by_list(fields)) throw SetupError(*std::move(refused));
  }
  constexpr std::uint64_t kReach = 256;  // bytes: a few blocks of small chunks
  constexpr std::uint64_t kShareOfPeriod = 16;
  const IdFormat format(fields);
  const std::uint64_t stride = std::max<std::size_t>(group_links, 1);
  const std::uint64_t steps = std::min(2 * step * stride, window / 2);
  std::uint64_t reach = std::min({kReach, (window - steps) / 4, format.period() / kShareOfPeriod});
  reach = std::max<std::uint64_t>(reach, std::min(2 * stride, window / 4));
  if (!format.shows_restarts() && !trigger_list) {
    base::log_warning(
        "L1 ids have {} bits and there is no trigger list: event counter resets are not seen; set "
        "readout.builder.trigger_list = true if the input has a list",
        fields.l1id_bits);
  }
  if (trigger_list && !format.has_ecr() && !fields.has_bcid) {
    base::log_warning(
        "chunks carry neither a BCID nor the number of event counter resets: if all links are silent for a whole "
        "epoch, or a link's counter "
        "goes back, chunks go into events of another epoch with the same ids, flagged, until the next reset");
  }
  return {.format = format,
          .has_bcid = fields.has_bcid,
          .reach = reach,
          .step = step,
          .window = window,
          .timeout_ns = static_cast<std::uint64_t>(timeout.count()),
          .aside = static_cast<std::size_t>(4 * reach + 2 * step * stride + 64),
          .listed = trigger_list,
          .several_threads = false,
          .list_entries = trigger_list ? std::bit_ceil(2 * window + 1024) : 0};
}

}  // namespace rodeo::readout
