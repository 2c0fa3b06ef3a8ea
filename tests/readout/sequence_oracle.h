// The decisions of a Sequencer on a random run, and an oracle that knows the event of every chunk.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "readout/sequence/sequencer.h"
#include "readout/sequence/turns.h"
#include "readout/sequence_scenarios.h"

namespace rodeo::test {

/// The result of a scenario.
struct Judged {
  std::uint64_t chunks = 0, right = 0, flagged = 0, wrong_flagged = 0, wrong_incomplete = 0, lies = 0, unknowable = 0,
                wrong = 0;
  std::uint64_t lost = 0, good_lost = 0, others_lost = 0, without_fate = 0;
  std::uint64_t silent = 0, head = 0, tail = 0, deficit = 0, spurious = 0, empty = 0, skipped = 0, period = 0, lied = 0,
                chance = 0, others_of_group = 0, others_of_two = 0, others_read_later = 0, repeats = 0, standstills = 0,
                everybody_waits = 0;
  std::uint64_t in_doubt = 0;  // chunks flagged because the place of their link was not proven
  std::map<std::string, std::uint64_t> by_reason;

  void add(const Judged& o) {
    chunks += o.chunks;
    right += o.right;
    flagged += o.flagged;
    wrong_flagged += o.wrong_flagged;
    wrong_incomplete += o.wrong_incomplete;
    lies += o.lies;
    unknowable += o.unknowable;
    wrong += o.wrong;
    lost += o.lost;
    good_lost += o.good_lost;
    others_lost += o.others_lost;
    without_fate += o.without_fate;
    silent += o.silent;
    head += o.head;
    tail += o.tail;
    deficit += o.deficit;
    spurious += o.spurious;
    empty += o.empty;
    skipped += o.skipped;
    period += o.period;
    lied += o.lied;
    chance += o.chance;
    others_of_group += o.others_of_group;
    others_of_two += o.others_of_two;
    others_read_later += o.others_read_later;
    repeats += o.repeats;
    standstills += o.standstills;
    in_doubt += o.in_doubt;
    for (const auto& [reason, n] : o.by_reason) by_reason[reason] += n;
  }
};

/// Drives a Sequencer as a builder does. Its window is a map.
class ScenarioRun : private readout::EventBcids {
 public:
  explicit ScenarioRun(const Scenario& scenario)
      : s_(scenario),
        sequencer_(settings(scenario)),
        links_(scenario.links),
        events_(scenario.window),
        turns_(scenario.links),
        waiting_(scenario.links),
        readers_(scenario.readers),
        engine_(scenario.seed) {
    for (auto& link : links_) link = std::make_unique<readout::LinkSequence>();
    for (std::size_t i = 0; i < s_.links; ++i) {
      sequencer_.add(*links_[i], s_.full ? static_cast<std::uint16_t>(s_.links) : 1, reader_of(i), reader_of(i));
      reader(i).links.push_back(i);
    }
    for (std::size_t i = 0; i < readers_.size(); ++i) readers_[i].index = i;
    if (s_.bcid && !s_.full && s_.readers == 1) sequencer_.set_bcids(0, *this);
    if (s_.full) sequencer_.set_events(events_);
  }

  Judged run() {
    if (readers_.size() == 1)
      read_in_order();
    else
      read_at_random();
    if (s_.listed) sequencer_.end_list();
    for (int round = 0; round < 3; ++round) {
      for (Reader& of : readers_) settle(of);
      for (Reader& of : readers_) close(of, false);
    }
    for (int round = 0; round < 2; ++round) {
      for (Reader& of : readers_) finish(of);
    }
    for (std::size_t i = 0; i < s_.links; ++i) {
      sequencer_.give_up(i, decisions_);
      apply(i);
    }
    for (Reader& of : readers_) close(of, true);
    return judge();
  }

 private:
  struct Event {
    std::map<std::size_t, std::size_t> chunks;  // link to chunk
    std::size_t first = 0;                      // first chunk
    bool doubtful = false;
    std::uint64_t opened = 0;
  };
  struct Closed {
    Sequence number;
    Event event;
    L1Id l1id;
    std::uint64_t resets;
    readout::TriggerEntries::Entry listed = {};  // the list's entry when the last part of this event was closed
  };
  /// A worker: its window, and its chunks.
  struct Reader {
    std::size_t index = 0;
    std::vector<std::size_t> links;
    std::vector<std::size_t> chunks;
    std::size_t next = 0;           // next chunk
    std::uint64_t now = 0;          // the event clock of the worker, which stops while there are chunks to read
    std::uint64_t looked_at = 0;    // the time at which it last had nothing to read
    std::uint64_t returned = 1000;  // the time at which its links were last all silent
    std::uint64_t rests_until = 0;  // the CPU or the consumers are busy until this time
    bool waits = false;             // the worker waits for another reader
    std::uint64_t version = 0;
    bool over = false;
    Sequence oldest = 0;
    Sequence head = 0;
    std::map<Sequence, Event> open;
    std::vector<std::pair<std::uint64_t, Sequence>> listed_at;
  };

  static readout::Sequencer::Settings settings(const Scenario& s) {
    TriggerFields fields;
    fields.l1id_bits = static_cast<std::uint8_t>(std::min(s.bits, 24U));
    fields.has_ecr = s.bits == 32;
    return {.format = readout::IdFormat(fields),
            .has_bcid = s.bcid,
            .reach = s.reach,
            .step = kScenarioStep,
            .window = s.window,
            .timeout_ns = s.timeout * 1000,
            .aside = s.aside,
            .listed = s.listed,
            .several_threads = s.readers > 1,
            .list_entries = s.listed ? std::bit_ceil(2 * s.window + 1024) : 0};
  }

  // BCID of the first chunk of an open or closed event.
  std::optional<std::uint16_t> bcid(Sequence number) const override {
    const Reader& one = readers_.front();
    const auto open = one.open.find(number);
    const auto closed = closed_.find(number);
    const Event* const event = open != one.open.end()    ? &open->second
                               : closed != closed_.end() ? &closed->second.event
                                                         : nullptr;
    if (event == nullptr || event->chunks.empty()) return std::nullopt;
    return s_.chunks[event->first].bcid;
  }

  std::size_t reader_of(std::size_t link) const { return link * s_.readers / s_.links; }
  Reader& reader(std::size_t link) { return readers_[reader_of(link)]; }

  // With one reader: reads everything in the order of arrival.
  void read_in_order() {
    Reader& one = readers_.front();
    std::size_t c = 0;
    std::size_t l = 0;
    while (c < s_.chunks.size() || l < s_.list.size()) {
      const bool from_list = l < s_.list.size() && (c == s_.chunks.size() || s_.list[l].at <= s_.chunks[c].at);
      now_ = one.now = from_list ? s_.list[l].at : s_.chunks[c].at;
      if (from_list) {
        if (!announce(s_.list[l++])) ++list_refused_;
      } else {
        offer(c++);
      }
      if (s_.listed) sequencer_.judge_overdue_entry(now_);
      if (sequencer_.version() != one.version || (c + l) % 16 == 0) settle(one);
      close(one, false);
    }
  }

  // With several readers: each reads what has arrived so far, unless it rests or must wait for another.
  void read_at_random() {
    for (std::size_t c = 0; c < s_.chunks.size(); ++c) reader(s_.chunks[c].link).chunks.push_back(c);
    std::size_t l = 0;
    std::uint32_t idle = 0;
    std::vector<Reader*> order;
    for (Reader& of : readers_) order.push_back(&of);
    while (!std::all_of(readers_.begin(), readers_.end(), [](const Reader& of) { return of.over; })) {
      now_ += 8'000;
      bool went_on = false;
      while (l < s_.list.size() && s_.list[l].at <= now_ && announce(s_.list[l])) {
        ++l;
        went_on = true;
      }
      if (s_.listed) sequencer_.judge_overdue_entry(now_);
      std::shuffle(order.begin(), order.end(), engine_);
      for (Reader* const of : order) {
        if (of->over) follow(*of);
        if (of->over || of->rests_until > now_) continue;
        if (of->rests_until != 0) sequencer_.clear_waiting(of->index);
        const std::uint64_t rest = engine_() % 20 == 0 ? engine_() % (3 * s_.window) : 0;
        of->rests_until = rest == 0 ? 0 : now_ + rest * 1000;
        went_on = read(*of) || went_on;
        if (rest % 2 != 0 && !of->waits) sequencer_.set_waiting(of->index, readout::Sequencer::kConsumers, of->oldest);
      }
      const bool all_came = s_.chunks.empty() || now_ > s_.chunks.back().at + 4 * s_.window * 1000 + s_.timeout * 1000;
      idle = went_on || !all_came ? 0 : idle + 1;
      if (idle > 1000) {
        ++standstills_;
        return;
      }
    }
    while (l < s_.list.size() && announce(s_.list[l])) ++l;
  }

  // True if the reader has made progress.
  bool read(Reader& of) {
    bool any = false;
    of.waits = false;
    settle(of);
    close(of, false);
    while (!drained(of)) {
      const std::size_t with = waits_with(of, s_.chunks[of.chunks[of.next]].link);
      if (with != readout::Sequencer::kNothing) {
        sequencer_.set_waiting(of.index, with, of.oldest);
        of.waits = true;
        const bool one_is_over = std::any_of(readers_.begin(), readers_.end(), [](const Reader& each) { return each.over; });
        if (!one_is_over && !sequencer_.any_reader_proceeds()) ++everybody_waits_;
        return any;
      }
      sequencer_.clear_waiting(of.index);
      offer(of.chunks[of.next++]);
      any = true;
      if (sequencer_.version() != of.version || of.next % 16 == 0) settle(of);
      close(of, false);
    }
    of.now += std::min(now_ - of.looked_at, s_.timeout * 1000 / 4);
    of.looked_at = now_;
    sequencer_.set_drained(of.index, of.now);
    settle(of);
    close(of, false);
    if (of.next == of.chunks.size()) {
      of.over = true;
      finish(of);
      any = true;
    }
    return any;
  }

  // When no chunk waits any more, closes the events that the other readers have passed.
  void follow(Reader& of) {
    finish(of);
    for (const std::size_t link : of.links) {
      if (waiting_[link].empty()) continue;
      sequencer_.set_waiting(of.index, link, of.oldest);
      if (sequencer_.any_reader_proceeds()) return;
      for (std::size_t reader = 0; reader < readers_.size(); ++reader) sequencer_.set_drained(reader);
      finish(of);
      for (const std::size_t each : of.links) {
        sequencer_.give_up(each, decisions_);
        apply(each);
      }
    }
    begin(of);
    for (const Reader& other : readers_) raise(of, other.oldest);
    while (of.oldest < of.head) close_oldest(of);
  }

  bool drained(const Reader& of) const { return of.next == of.chunks.size() || s_.chunks[of.chunks[of.next]].at > now_; }

  // The reader waits if it is far ahead. It also waits if other readers may decide its waiting chunks, and these are many or
  // span many events.
  std::size_t waits_with(const Reader& of, std::size_t link) const {
    for (const Reader& other : readers_) {
      if (&other != &of && of.oldest > other.oldest + 2 * s_.window) return readout::Sequencer::kRoom;
    }
    const bool presses = !waiting_[link].empty() && (waiting_[link].size() > s_.aside / 4 || sequencer_.spans_far(link));
    const bool may_be_resolved = presses && (sequencer_.may_be_resolved(link, 0, of.index) ||
                                             sequencer_.may_be_resolved(link, of.index + 1, s_.readers));
    return may_be_resolved ? link : readout::Sequencer::kNothing;
  }

  void finish(const Reader& of) {
    for (const std::size_t link : of.links) {
      sequencer_.finish(link, of.now, of.oldest, decisions_);
      apply(link);
    }
  }

  bool announce(const SentChunk& entry) {
    Sequence oldest = readers_.front().oldest;
    for (const Reader& of : readers_) oldest = std::min(oldest, of.oldest);
    if (sequencer_.begun()) oldest = std::max(oldest, sequencer_.run_first());
    return sequencer_.announce({entry.id, entry.bcid, 0}, now_, oldest);
  }

  void offer(std::size_t chunk) {
    const SentChunk& sent = s_.chunks[chunk];
    readout::LinkSequence& link = *links_[sent.link];
    Reader& of = reader(sent.link);
    waiting_[sent.link].push_back(chunk);
    if (!any_live(of)) of.returned = of.now;  // all links were silent: they may return together
    const Sequence before = link.position();
    link.begin_block(link.stride);
    if (sent.id == link.expected && link.position() < link.end && link.position() < of.oldest + s_.window && !s_.full) {
      // Does what the fast path of the builders does.
      link.seen.store(of.now);
      const readout::Decision taken{
          .verdict = link.position() < of.oldest ? readout::Verdict::late : readout::Verdict::accept,
          .doubtful = false,
          .unproven = false,
          .sequence = link.position(),
          .from = link.position(),
          .resets = link.resets,
          .base = link.base};
      link.advance(1, settings(s_).format);
      decisions_.push_back(taken);
    } else {
      sequencer_.offer(sent.link, sent.id, sent.bcid, of.now, of.oldest, decisions_);
    }
    link.end_block(before);
    apply(sent.link);
  }

  void settle(Reader& of) {
    of.version = sequencer_.version();
    for (const std::size_t link : of.links) {
      sequencer_.rejudge(link, of.now, of.oldest, decisions_);
      apply(link);
    }
  }

  void apply(std::size_t link) {
    Reader& of = reader(link);
    if (sequencer_.begun() && !events_begun_) events_.begin(sequencer_.run_first());
    events_begun_ = sequencer_.begun();
    begin(of);
    for (const readout::Decision& decision : decisions_) {
      const std::size_t chunk = waiting_[link].front();
      waiting_[link].erase(waiting_[link].begin());
      if (decision.verdict != readout::Verdict::accept) {
        constexpr const char* kReasons[] = {"take", "late", "duplicate", "out_of_sequence", "not_listed"};
        lose(chunk, kReasons[static_cast<std::size_t>(decision.verdict)]);
        continue;
      }
      if (decision.sequence < of.oldest) {
        lose(chunk, "late");
        continue;
      }
      while (decision.sequence >= of.oldest + s_.window) close_oldest(of);
      raise(of, decision.sequence + 1);
      Event& event = of.open[decision.sequence];
      if (s_.full && turns_.is_stray(link, decision.sequence)) {
        if (event.chunks.empty() && strays_.count(decision.sequence) == 0)
          strays_[decision.sequence] = {link, chunk};
        else
          lose(chunk, "out_of_sequence");
        continue;
      }
      if (const auto stray = strays_.find(decision.sequence); stray != strays_.end()) {
        lose(stray->second.second, "out_of_sequence");
        strays_.erase(stray);
      }
      if (s_.full ? !event.chunks.empty() : event.chunks.count(link) != 0) {
        lose(chunk, "duplicate");
        event.doubtful = true;
        continue;
      }
      if (s_.full) events_.add(decision.sequence);
      if (event.chunks.empty()) event.first = chunk;
      event.chunks[link] = chunk;
      doubtful_chunks_[link] += decision.unproven ? 1 : 0;
      event.doubtful = event.doubtful || decision.doubtful || decision.unproven;
      fate_[chunk] = "event";
    }
    decisions_.clear();
  }

  void begin(Reader& of) const {
    if (of.oldest == 0 && sequencer_.begun()) of.oldest = of.head = sequencer_.run_first();
  }

  void raise(Reader& of, Sequence head) const {
    for (; of.head < head; ++of.head) of.open[of.head].opened = of.now;
  }

  void lose(std::size_t chunk, const char* reason) {
    if (fate_.count(chunk) != 0) ++two_fates_;
    fate_[chunk] = reason;
  }

  bool lives(const Reader& of, std::size_t link) const {
    return of.now <= std::max(links_[link]->seen.load(), of.returned) + s_.timeout * 1000;
  }
  bool any_live(const Reader& of) const {
    return std::any_of(of.links.begin(), of.links.end(), [&](std::size_t link) { return lives(of, link); });
  }

  bool done(const Reader& of, Sequence number, const Event& event) const {
    if (s_.listed && number >= sequencer_.trigger_entries().end() && !ended_) return false;
    if (s_.full && !event.chunks.empty()) return true;
    for (const std::size_t i : of.links) {
      if (event.chunks.count(i) != 0) continue;
      const readout::LinkSequence& link = *links_[i];
      if (!lives(of, i)) continue;
      const Sequence passed = s_.full ? link.position() - link.stride : link.position() - 1;
      if (!link.here.load() || passed < number) return false;
    }
    return true;
  }

  void close(Reader& of, bool all) {
    begin(of);
    if (of.oldest == 0) return;
    ended_ = all;
    // Events that another reader has passed exist.
    for (const Reader& other : readers_) raise(of, std::min(other.oldest, of.oldest + s_.window));
    // Events of the list exist even if no link has reached them.
    if (s_.listed) {
      of.listed_at.emplace_back(of.now, sequencer_.trigger_entries().end());
      while (of.listed_at.size() > 1 && of.listed_at.front().first + s_.timeout * 1000 < of.now) {
        if (!any_live(of)) raise(of, std::max(of.head, of.listed_at.front().second));  // live links will reach these
        of.listed_at.erase(of.listed_at.begin());
      }
      if (all) raise(of, std::max(of.head, sequencer_.trigger_entries().end()));
    }
    while (of.oldest < of.head) {
      const Event& event = of.open[of.oldest];
      const bool old = of.now > event.opened + s_.timeout * 1000 && (readers_.size() == 1 || drained(of));
      if (!all && !old && !done(of, of.oldest, event)) return;
      close_oldest(of);
    }
  }

  void close_oldest(Reader& of) {
    raise(of, of.oldest + 1);
    if (const auto stray = strays_.find(of.oldest); stray != strays_.end()) {
      of.open[of.oldest].chunks[stray->second.first] = stray->second.second;
      of.open[of.oldest].doubtful = !turns_.is_redealt(of.oldest);
      fate_[stray->second.second] = "event";
      strays_.erase(stray);
      events_.add(of.oldest);
    }
    // The readers' parts of an event form one event.
    const readout::Segment& segment = sequencer_.segment_of(of.oldest);
    Closed& closed =
        closed_.try_emplace(of.oldest, Closed{of.oldest, {}, segment.l1id(of.oldest), segment.resets}).first->second;
    if (s_.listed && of.oldest < sequencer_.trigger_entries().end())
      closed.listed = sequencer_.trigger_entries().at(of.oldest);
    Event& event = closed.event;
    Event& part = of.open[of.oldest];
    if (event.chunks.empty()) event.first = part.first;
    event.chunks.merge(part.chunks);
    event.doubtful = event.doubtful || part.doubtful;
    of.open.erase(of.oldest);
    if (s_.full && events_.oldest() == of.oldest && !events_.has_arrived(of.oldest)) {
      events_.raise(of.oldest + 1);
      events_.skip_oldest();
    }
    ++of.oldest;
  }

  Judged judge() {
    Judged j;
    j.chunks = s_.chunks.size();
    j.without_fate = two_fates_;
    j.standstills = standstills_;
    j.everybody_waits = everybody_waits_;
    for (const auto& [link, chunks] : doubtful_chunks_) j.in_doubt += chunks;
    for (std::size_t c = 0; c < s_.chunks.size(); ++c) {
      const auto fate = fate_.find(c);
      if (fate == fate_.end()) {
        ++j.without_fate;
      } else if (fate->second != "event") {
        ++j.lost;
        ++j.by_reason[fate->second];
        const bool alone = s_.fault == LinkFault::jump_alone || s_.fault == LinkFault::restart_alone ||
                           s_.fault == LinkFault::dead || s_.fault == LinkFault::silent || s_.fault == LinkFault::flip;
        if (alone && s_.links > 1 && s_.chunks[c].link != 0) {
          const bool lies = s_.fault != LinkFault::dead && s_.fault != LinkFault::silent;
          if (lies && s_.full && !(s_.listed && s_.bcid))
            ++j.others_of_group;  // each event of a group comes once: it is unknown which chunk is wrong
          else if ((lies || (s_.readers > 1 && !s_.listed)) && s_.links == 2)
            ++j.others_of_two;  // two links contradict each other
          else if (lies && s_.readers > 1 && !s_.listed)
            ++j.others_read_later;  // a link that could contradict it had not been read
          else
            ++j.others_lost;
        }
        if (s_.chunks[c].fault == 0) ++j.good_lost;
      }
    }
    // Empty events are real if the list has them, or if a later event of the same segment has come.
    std::vector<const Closed*> real;
    std::vector<const Closed*> pending;
    bool begun = false;
    Sequence base = 0;
    for (const auto& [number, closed] : closed_) {
      const readout::Segment& segment = sequencer_.segment_of(closed.number);
      if (segment.base != base || segment.first == closed.number) {
        pending.clear();
        base = segment.base;
      }
      if (s_.listed) {
        if (closed.event.chunks.empty() && closed.listed.state == readout::TriggerEntries::kNoEvent) continue;
        real.push_back(&closed);
      } else if (!closed.event.chunks.empty()) {
        if (begun) real.insert(real.end(), pending.begin(), pending.end());
        begun = true;
        pending.clear();
        real.push_back(&closed);
      } else {
        pending.push_back(&closed);
      }
    }
    std::multiset<std::uint32_t> got;
    const std::uint32_t low = s_.bits >= 24 ? 0xffffffU : (1U << s_.bits) - 1;
    const bool visible = s_.bits == 32;
    for (const Closed* closed : real) {
      const Event& event = closed->event;
      if (event.chunks.empty()) ++j.empty;
      got.insert(visible || s_.listed ? closed->l1id.value : closed->l1id.l1());
      std::map<std::size_t, std::size_t> votes;
      for (const auto& [link, chunk] : event.chunks) ++votes[s_.chunks[chunk].event];
      std::size_t most = 0;
      for (const auto& [g, n] : votes) most = std::max(most, n);
      bool flag = event.doubtful;
      std::set<std::uint16_t> bcids;
      if (s_.bcid) {
        for (const auto& [link, chunk] : event.chunks) bcids.insert(s_.chunks[chunk].bcid);
        if (s_.listed && closed->listed.state == readout::TriggerEntries::kListed) bcids.insert(closed->listed.bcid);
        flag = flag || bcids.size() > 1;
      }
      flag = flag || (s_.listed && closed->listed.state == readout::TriggerEntries::kNoEvent);
      for (const auto& [link, chunk] : event.chunks) {
        const SentChunk& c = s_.chunks[chunk];
        const std::uint32_t truth = s_.truth[c.event];
        const std::uint32_t id = visible ? closed->l1id.value : closed->l1id.l1() & low;
        bool ok = id_of(truth, s_.bits) == id && (votes[c.event] == most || votes.size() == event.chunks.size());
        if (s_.listed && closed->l1id.value != truth) ok = false;
        if (ok) {
          ++(flag ? j.flagged : j.right);
        } else if (flag) {
          ++j.wrong_flagged;
        } else if (s_.full || event.chunks.size() == s_.links) {
          std::size_t apart = s_.truth.size();
          for (std::size_t g = 0; g < s_.truth.size(); ++g) {
            if (s_.listed ? s_.truth[g] == closed->l1id.value : id_of(s_.truth[g], s_.bits) == id)
              apart = std::min(apart, g > c.event ? g - c.event : c.event - g);
          }
          const bool compared = s_.bcid && (s_.listed || (!s_.full && s_.links > 1));
          if (compared && (c.fault == 'j' || c.fault == 'f' || s_.readers > 1)) {
            ++j.chance;  // the BCID reveals a wrong id or epoch in all but one of 3564 cases
          } else if (c.fault == 'j' && (s_.links == 1 || s_.full || (s_.links == 2 && !s_.listed) ||
                                        apart <= apart_at_most() || (s_.listed && !visible))) {
            ++j.lies;  // nothing contradicts a single counter, or an error below the distance of the links
          } else if (c.fault == 'f') {
            ++j.unknowable;  // the link, or another link of its group, has just lost this id
          } else if (!visible && !s_.bcid && id == id_of(truth, s_.bits) &&
                     (s_.links == 1 || (s_.readers > 1 && !s_.listed) || longest_silence() > kScenarioStep ||
                      s_.fault == LinkFault::jump_alone || s_.fault == LinkFault::restart_alone ||
                      (s_.fault == LinkFault::short_epochs && s_.full))) {
            // Another epoch has this id, too. A link may continue there if it is alone, was silent or had wrong ids; if it
            // is read later than the others, so that a flipped id looks like a reset; or if the epochs of its group are
            // shorter than its links may be apart.
            ++j.repeats;
          } else {
            ++j.wrong;
          }
        } else {
          ++j.wrong_incomplete;
        }
      }
    }
    j.skipped = sequencer_.skipped();
    const std::set<std::uint32_t> distinct(got.begin(), got.end());
    if (visible || s_.listed || s_.epoch.back() == 0) {
      std::map<std::uint32_t, std::uint32_t> ends;
      for (const std::uint32_t id : distinct) ends[id >> 24] = std::max(ends[id >> 24], id);
      const std::uint32_t mask = visible || s_.listed ? ~0U : low;
      std::set<std::uint32_t> want;
      bool any = false;
      std::uint64_t missing = 0;
      std::set<std::uint32_t> masked;
      for (const std::uint32_t id : distinct) masked.insert(id & mask);
      std::size_t last_taken = 0;
      for (const auto& [chunk, fate] : fate_)
        last_taken = std::max(last_taken, fate == "event" ? s_.chunks[chunk].event : 0);
      for (std::size_t g = 0; g < s_.truth.size(); ++g) {
        const std::uint32_t truth = s_.truth[g];
        const std::uint32_t id = visible || s_.listed ? truth : truth & low;
        want.insert(id);
        if (masked.count(id) != 0) {
          any = true;
          continue;
        }
        const auto end = ends.find(visible || s_.listed ? truth >> 24 : 0);
        if (g > last_taken || end == ends.end() || (id > end->second && (visible || s_.listed || s_.bits >= 16)))
          ++j.tail;
        else if (!any)
          ++j.head;
        else if (s_.links == 1 && (s_.fault == LinkFault::jump_alone || s_.fault == LinkFault::restart_alone))
          ++j.lied;  // nothing contradicts a single counter
        else if (!s_.listed && s_.bits == 8 && longest_silence() > 256 - 64)
          ++j.period;  // ids of 8 bits repeat during a silence
        else
          ++missing;
      }
      j.silent = missing > j.skipped ? missing - j.skipped : 0;
      for (const std::uint32_t id : masked) j.spurious += want.count(id) == 0 ? 1 : 0;
    } else {
      const std::size_t accounted = real.size() + j.skipped;
      j.deficit = s_.truth.size() > accounted ? s_.truth.size() - accounted : 0;
      j.spurious = accounted > s_.truth.size() ? accounted - s_.truth.size() : 0;
    }
    return j;
  }

  // The largest distance of two links in events: the window, and the lead that one of several readers may have. With the
  // list a chunk waits for a time-out; during this time the others may reach a wrong id.
  std::size_t apart_at_most() const {
    const std::size_t lead = (s_.readers > 1 ? 4 : 1) * s_.window;
    return std::max<std::size_t>(lead, s_.listed ? s_.timeout : 0) + kScenarioStep;
  }

  // The longest sequence of events in which no chunk of some link was taken.
  std::size_t longest_silence() const {
    std::size_t longest = 0;
    std::vector<std::size_t> last(s_.links);
    for (const auto& [chunk, fate] : fate_) {
      const SentChunk& c = s_.chunks[chunk];
      if (fate != "event") continue;
      longest = std::max(longest, c.event - std::min(c.event, last[c.link]));
      last[c.link] = c.event;
    }
    return longest;
  }

  const Scenario& s_;
  readout::Sequencer sequencer_;
  std::vector<std::unique_ptr<readout::LinkSequence>> links_;
  readout::EventSet events_;
  readout::Turns turns_;
  std::map<std::size_t, std::uint64_t> doubtful_chunks_;            // number of doubtful chunks of each link
  std::map<Sequence, std::pair<std::size_t, std::size_t>> strays_;  // link, chunk
  std::vector<std::vector<std::size_t>> waiting_;
  std::vector<readout::Decision> decisions_;
  std::vector<Reader> readers_;
  std::mt19937 engine_;
  std::map<Sequence, Closed> closed_;
  std::map<std::size_t, std::string> fate_;
  std::uint64_t now_ = 0;
  std::uint64_t two_fates_ = 0;
  std::uint64_t list_refused_ = 0;
  std::uint64_t standstills_ = 0;
  std::uint64_t everybody_waits_ = 0;
  bool events_begun_ = false;
  bool ended_ = false;
};

}  // namespace rodeo::test
