#include "readout/rob_links.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/sentence.h"
#include "formats/file_marks.h"
#include "formats/link_names.h"

namespace rodeo::readout {
namespace {

using formats::to_text;

[[noreturn]] void refuse_taken(const RobSettings& rob, Fid fid, SourceId by) {
  if (rob.links.empty()) {
    throw SetupError({"readout.duplicate_link",
                      fmt::format("ROB {} lists no links and would take every link of the input, but ROB {} has "
                                  "{} already",
                                  to_text(rob.source_id), to_text(by), to_text(fid)),
                      rob.where, "give each ROB its `links`"});
  }
  throw SetupError({"readout.duplicate_link",
                    by == rob.source_id ? fmt::format("link {} is listed twice", to_text(fid))
                                        : fmt::format("link {} of ROB {} belongs to ROB {} already",
                                                      formats::named_link(fid), to_text(rob.source_id), to_text(by)),
                    rob.where, "a link belongs to one ROB, once"});
}

}  // namespace

std::vector<BuilderLink> rob_links(const RobSettings& rob, std::optional<std::span<const Fid>> input_links,
                                   AssignedLinks& assigned) {
  const bool all = rob.links.empty();
  if (all && !input_links) return {};
  const std::vector<Fid> fids = all ? std::vector<Fid>(input_links->begin(), input_links->end()) : rob.links;
  if (fids.empty()) {
    throw SetupError({"readout.no_links",
                      fmt::format("ROB {} has no links, and the input delivers none", to_text(rob.source_id)), rob.where,
                      "name the links, or give the input some"});
  }
  if (!rob.link_ids.empty() && rob.link_ids.size() != fids.size()) {
    throw SetupError({"readout.link_ids",
                      fmt::format("ROB {} has {} but {}", to_text(rob.source_id), base::counted(fids.size(), "link"),
                                  base::counted(rob.link_ids.size(), "link id")),
                      rob.where, "give one id per link, or none: then they follow from the FIDs"});
  }
  std::set<Fid> known;
  if (input_links) known.insert(input_links->begin(), input_links->end());
  std::vector<BuilderLink> links;
  links.reserve(fids.size());
  for (std::size_t i = 0; i < fids.size(); ++i) {
    if (input_links && !known.contains(fids[i])) {
      throw SetupError(
          {"readout.unknown_link",
           fmt::format("the input does not deliver link {}, which ROB {} wants", to_text(fids[i]), to_text(rob.source_id)),
           rob.where,
           fmt::format("the input has {}, from {} to {}", base::counted(input_links->size(), "link"),
                       input_links->empty() ? "-" : to_text(input_links->front()),
                       input_links->empty() ? "-" : to_text(input_links->back()))});
    }
    if (const auto [before, fresh] = assigned.emplace(fids[i], rob.source_id); !fresh)
      refuse_taken(rob, fids[i], before->second);
    links.push_back({.fid = fids[i],
                     .link_id = rob.link_ids.empty() ? fids[i].default_link_id() : rob.link_ids[i],
                     .group = rob.links_per_group == 0 ? 0 : static_cast<std::uint32_t>(i) / rob.links_per_group});
  }
  return links;
}

std::string links_string(SourceId source_id, std::span<const BuilderLink> links) {
  std::string text = fmt::format("{}={}:", formats::kLinksKey, to_text(source_id));
  for (std::size_t i = 0; i < links.size();) {
    std::size_t end = i + 1;
    while (end < links.size() && links[end].link_id == links[end - 1].link_id + 1) ++end;
    text += fmt::format(" {:#010x}", links[i].link_id);
    if (end - i > 1) text += fmt::format("+{}", end - i);
    i = end;
  }
  return text;
}

void check_source_ids(std::span<const RobSettings> robs) {
  if (robs.empty()) {
    throw SetupError(
        {"readout.no_rob", "the readout has no ROB to build", "", "add a [[readout.rob]] table with a source_id"});
  }
  std::set<SourceId> sources;
  for (const RobSettings& rob : robs) {
    if (sources.insert(rob.source_id).second) continue;
    throw SetupError({"readout.duplicate_rob", fmt::format("source id {} is given to two ROBs", to_text(rob.source_id)),
                      rob.where, "every ROB has a source id of its own"});
  }
}

}  // namespace rodeo::readout
