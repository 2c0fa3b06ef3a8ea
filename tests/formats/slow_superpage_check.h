// The slow twin of SuperpageCheck: word by word, one rule after the other, with 64-bit arithmetic.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "formats/rdh_payload.h"
#include "formats/superpage_check.h"

namespace rodeo::formats::test {

class SlowSuperpageCheck {
 public:
  explicit SlowSuperpageCheck(const SuperpageCheckSettings& settings) : settings_(settings) {}

  void check(std::uint8_t link, std::span<const std::byte> superpage) {
    ++counts_[0];
    counts_[2] += superpage.size();
    if (settings_.pattern == PagePattern::cru_internal) return internal(link, superpage);
    std::size_t at = 0;
    while (at < superpage.size()) {
      if (superpage.size() - at < 64) return add(SuperpageCounter::beyond_end);
      ++counts_[1];
      const auto word = [&](std::size_t n) { return word_at(superpage, at + 4 * n); };
      const std::uint64_t version = word(0) & 0xff;
      if ((version != 6 && version != 7) || (word(0) >> 8 & 0xff) != 64) {
        packet_[link].reset();
        pattern_[link].reset();
        last_[link].reset();
        return add(SuperpageCounter::bad_header);
      }
      const std::uint64_t offset = word(2) & 0xffff;
      const std::uint64_t memory = word(2) >> 16;
      if (offset == 0) return add(SuperpageCounter::no_offset);
      const bool sized = memory >= 64 && memory <= offset && memory <= settings_.page_bytes;
      if (!sized) add(SuperpageCounter::bad_size);
      if (offset < 64 || at + offset > superpage.size()) return add(SuperpageCounter::beyond_end);
      if ((word(3) & 0xff) != link) add(SuperpageCounter::wrong_link);

      bool wanted = true;
      const std::uint64_t counter = word(3) >> 8 & 0xff;
      if (packet_[link]) {
        wanted = ++since_[link] >= settings_.every;
        if (wanted) {
          const std::uint64_t next = (*packet_[link] + since_[link]) % (std::uint64_t{settings_.packet_counter_max} + 1);
          if (counter != next) ++packet_errors_;
          packet_[link] = settings_.resynchronise ? counter : next;
          since_[link] = 0;
        }
      } else {
        packet_[link] = counter;
        since_[link] = 0;
      }
      heartbeat_frame(link, {word(5), word(9) & 0xffff, counter, (word(9) >> 16 & 0xff) != 0});
      time_frame(link, word(8), word(5), at);
      if (sized) {
        payload(link, superpage.subspan(at, memory), wanted);
      } else {
        pattern_[link].reset();
      }
      at += offset;
    }
  }

  /// Checks by the rules that all pages have shown.
  std::uint64_t count(std::size_t i) const {
    if (i == static_cast<std::size_t>(SuperpageCounter::packet_counter)) return packets_.shared() ? 0 : packet_errors_;
    if (i == static_cast<std::size_t>(SuperpageCounter::orbit)) return orbit_errors_ + missing_frames();
    return counts_[i];
  }

 private:
  std::array<std::uint64_t, kSuperpageCounters> counts_{};
  static std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 4; ++i) word |= static_cast<std::uint64_t>(bytes[at + i]) << 8 * i;
    return word;
  }
  void add(SuperpageCounter counter) { ++counts_[static_cast<std::size_t>(counter)]; }

  struct Page {
    std::uint64_t orbit;
    std::uint64_t number;
    std::uint64_t packet;
    bool stop;
  };
  void heartbeat_frame(std::uint8_t link, const Page& page) {
    if (!base_) base_ = page.orbit;
    const auto since = [](std::uint64_t orbit, std::uint64_t other) {
      return std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(orbit - other))};
    };
    const auto [seen, first] = seen_.try_emplace(link, Seen{page.orbit, since(page.orbit, *base_)});
    const std::int64_t from = seen->second.position;
    seen->second = {page.orbit, from + since(page.orbit, seen->second.orbit)};
    const std::optional<Page> last = std::exchange(last_[link], page);
    if (!last || !settings_.heartbeat_frames) return;
    if (!last->stop && page.orbit != last->orbit) {
      ++orbit_errors_;
      return;
    }
    if (page.number != (last->stop ? 0 : (last->number + 1) % 65536)) {
      add(SuperpageCounter::page_number);
    } else {
      const bool follows = page.packet == (last->packet + 1) % (std::uint64_t{settings_.packet_counter_max} + 1);
      last->stop ? packets_.between_frames(follows) : packets_.within_frame(follows);
    }
    if (!last->stop) return;
    const std::uint64_t step = (page.orbit + (1ULL << 32) - last->orbit) % (1ULL << 32);
    if (step == 0 || step >= 1ULL << 31) {
      ++orbit_errors_;
    } else {
      orbits_.add(static_cast<std::uint32_t>(step));
      const bool follows = page.packet == (last->packet + 1) % (std::uint64_t{settings_.packet_counter_max} + 1);
      steps_.push_back({link, from, from + static_cast<std::int64_t>(step), follows});
    }
  }
  std::uint64_t missing_frames() const {
    if (!orbits_.step() || orbits_.strict()) return orbits_.others();
    std::uint64_t missing = 0;
    for (const Step& one : steps_) {
      const std::int64_t usual = *orbits_.step();
      if (one.to - one.from == usual) continue;
      if (!packets_.shared()) {
        missing += one.follows ? 0 : 1;
      } else if (one.to - one.from > usual) {
        missing += std::ranges::any_of(steps_, [&](const Step& other) {
          const auto between = [&](std::int64_t orbit) { return one.from < orbit && orbit < one.to; };
          return other.link != one.link && (between(other.from) || between(other.to));
        });
      }
    }
    return missing;
  }
  void time_frame(std::uint8_t link, std::uint64_t trigger, std::uint64_t orbit, std::size_t at) {
    const std::uint64_t length = settings_.time_frame_orbits;
    if (length == 0) return;
    const bool start = (trigger >> 9 & 1) != 0 || (trigger >> 7 & 1) != 0;
    if (start) frame_[link].reset();
    if (!frame_[link] && (trigger >> 11 & 1) != 0) {
      frame_[link] = (orbit + length) % (1ULL << 32);
      return;
    }
    if (!frame_[link]) return;
    const std::uint64_t ahead = (orbit + (1ULL << 32) - *frame_[link]) % (1ULL << 32);
    if (ahead >= 1ULL << 31) return;
    if (at != 0) add(SuperpageCounter::time_frame);
    frame_[link] = (*frame_[link] + ahead / length * length + length) % (1ULL << 32);
  }

  /// Word i of the pattern.
  std::uint64_t pattern(std::uint64_t counter, std::size_t i) const {
    if (settings_.pattern == PagePattern::words) return (counter + i) & 0xffffffff;
    if (settings_.pattern == PagePattern::cru_internal) return (counter + i / 8) & 0xffffffff;
    const std::uint64_t c = (counter + i / 4) & 0xffffffff;
    return i % 4 == 3 ? 0 : i % 4 == 2 ? c & 0xffff : c;
  }
  void compare(std::uint8_t link, std::span<const std::byte> bytes, std::size_t unit_words, bool wanted) {
    const std::uint64_t first = word_at(bytes, 0);
    const std::uint64_t expected = pattern_[link].value_or(first);
    const std::size_t units = bytes.size() / (4 * unit_words);
    bool same = true;
    for (std::size_t i = 0; wanted && i < units * unit_words; ++i)
      same = same && word_at(bytes, 4 * i) == pattern(expected, i);
    if (!same) add(SuperpageCounter::payload);
    pattern_[link] = ((same || !settings_.resynchronise ? expected : first) + units) & 0xffffffff;
  }
  void payload(std::uint8_t link, std::span<const std::byte> page, bool wanted) {
    const auto bytes = page.subspan(64);
    if (bytes.empty() || settings_.pattern == PagePattern::unknown) return;
    if (settings_.pattern == PagePattern::provable) {
      std::vector<std::byte> good(bytes.begin(), bytes.end());
      if (!wanted) return;
      if (bytes.size() < 8) {
        if (!rdh_payload_matches(Provable(settings_.seed), Rdh::read(page.data()), bytes)) add(SuperpageCounter::payload);
        return;
      }
      write_rdh_payload(Provable(settings_.seed), Rdh::read(page.data()), good);
      if (!std::equal(good.begin(), good.end(), bytes.begin())) add(SuperpageCounter::payload);
      return;
    }
    if (bytes.size() >= 4) compare(link, bytes, settings_.pattern == PagePattern::ddg ? 4 : 1, wanted);
  }
  void internal(std::uint8_t link, std::span<const std::byte> superpage) {
    for (std::size_t page = 0; page * settings_.page_bytes < superpage.size(); ++page) {
      ++counts_[1];
      const std::size_t at = page * settings_.page_bytes;
      const std::size_t size = std::min<std::size_t>(settings_.page_bytes, superpage.size() - at);
      if (size < 32) return add(SuperpageCounter::beyond_end);
      compare(link, superpage.subspan(at, size), 8, page % settings_.every == 0);
    }
  }

  SuperpageCheckSettings settings_;
  std::map<std::uint8_t, std::optional<std::uint64_t>> packet_;
  std::map<std::uint8_t, std::uint64_t> since_;
  std::map<std::uint8_t, std::optional<std::uint64_t>> frame_;
  std::map<std::uint8_t, std::optional<Page>> last_;
  struct Seen {
    std::uint64_t orbit;
    std::int64_t position;
  };
  struct Step {
    std::uint8_t link;
    std::int64_t from;
    std::int64_t to;
    bool follows;
  };
  std::optional<std::uint64_t> base_;
  std::map<std::uint8_t, Seen> seen_;
  std::vector<Step> steps_;
  PacketCounterRule packets_;
  OrbitRule orbits_;
  std::uint64_t packet_errors_ = 0;
  std::uint64_t orbit_errors_ = 0;
  std::map<std::uint8_t, std::optional<std::uint64_t>> pattern_;
};

}  // namespace rodeo::formats::test
