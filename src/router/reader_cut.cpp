#include "router/reader_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/sentence.h"

namespace rodeo::router {
namespace {

constexpr std::uint64_t kVirtual = std::uint64_t{1} << 35;
constexpr int kBelowConnector = 36;

/// Splits the links of a card by DMA channel.
ReaderLinks by_channel(std::span<const Fid> links, std::span<const std::size_t> groups) {
  ReaderLinks channels;
  std::size_t group = 0;
  std::size_t first_of_group = 0;  // index into `channels`
  for (std::size_t at = 0; at < links.size(); ++at) {
    if (group + 1 < groups.size() && at == groups[group + 1]) {
      ++group;
      first_of_group = channels.size();
    }
    const auto begin = channels.begin() + static_cast<std::ptrdiff_t>(first_of_group);
    const auto channel = std::find_if(begin, channels.end(), [&](const std::vector<Fid>& one) {
      return one.front().value >> kBelowConnector == links[at].value >> kBelowConnector;
    });
    (channel == channels.end() ? channels.emplace_back() : *channel).push_back(links[at]);
  }
  return channels;
}

/// Returns the number of readers of each channel. Each further reader goes to the channel with most links per reader.
std::vector<std::size_t> shares(const ReaderLinks& channels, std::size_t readers) {
  std::vector<std::size_t> given(channels.size(), 1);
  for (std::size_t left = readers - channels.size(); left > 0; --left) {
    std::size_t most = 0;
    for (std::size_t one = 1; one < channels.size(); ++one) {
      if (channels[one].size() * given[most] > channels[most].size() * given[one]) most = one;
    }
    ++given[most];
  }
  return given;
}

}  // namespace

Result<ReaderLinks> cut_into_readers(std::span<const Fid> links, std::span<const std::size_t> groups,
                                     std::uint32_t readers) {
  if (links.empty())
    return std::unexpected(Error{"router.no_links", "the input has no links to publish", "", "see what router.input reads"});
  ReaderLinks channels = by_channel(links, groups);
  if (readers == 0 || readers == channels.size()) return channels;
  const auto refuse = [&](std::string why) {
    return std::unexpected(Error{"router.readers", fmt::format("router.readers is {}, but {}", readers, why), "",
                                 "leave it out: the default is one for each DMA channel of each card"});
  };
  if (readers < channels.size())
    return refuse(
        fmt::format("the links use {} of cards, and a reader reads one", base::counted(channels.size(), "DMA channel")));
  if (readers > links.size()) return refuse(fmt::format("there are {}", base::counted(links.size(), "link")));
  const std::vector<std::size_t> given = shares(channels, readers);
  ReaderLinks out;
  for (std::size_t channel = 0; channel < channels.size(); ++channel) {
    const std::span<const Fid> all = channels[channel];
    for (std::size_t share = 0; share < given[channel]; ++share) {
      const std::size_t begin = all.size() * share / given[channel];
      const std::size_t end = all.size() * (share + 1) / given[channel];
      out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  return out;
}

Fid trigger_list_fid(std::span<const Fid> links) {
  return Fid{(links.front().value >> kBelowConnector << kBelowConnector) | kVirtual};
}

}  // namespace rodeo::router
