// A scripted input: the test sets the pages, their order and the clock.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "rodeo/input.h"

namespace rodeo::test {

/// Chunks of one link, in a separate block of memory.
struct ScriptedRun {
  Fid fid;
  std::vector<std::vector<std::byte>> chunks;
  std::vector<std::uint8_t> statuses;  ///< empty: all are good
  bool more_follows = false;
};

/// An input for workers: pages appear in the order of push(), and the clock changes only when the test sets it.
class ScriptedInput final : public DataInput {
 public:
  /// `sources[i]` is the card of link i; if empty, there is one card. Streams read a card to its end before the next card.
  explicit ScriptedInput(std::vector<Fid> links, std::vector<std::uint32_t> sources = {})
      : links_(std::move(links)), sources_(std::move(sources)) {}

  /// Adds one page with these runs for each stream that carries their links. Any thread may call it.
  void push(const std::vector<ScriptedRun>& runs) {
    const std::lock_guard lock(mutex_);
    for (Stream* stream : streams_) stream->add(runs);
  }
  /// A page of the trigger's own list.
  void push_triggers(const std::vector<std::vector<std::byte>>& packets) {
    const std::lock_guard lock(mutex_);
    for (Stream* stream : trigger_streams_) stream->add({ScriptedRun{kTriggerFid, packets, {}, false}});
  }
  /// Ends the data. The list gets these entries when a stream has reported the end.
  void stop_before(std::vector<std::vector<std::byte>> packets) {
    const std::lock_guard lock(mutex_);
    last_triggers_ = std::move(packets);
    stopped_.store(true);
  }
  /// Waits until this number of pages is read.
  std::size_t trigger_lists() const { return trigger_streams_.size(); }
  void set_clock(std::uint64_t ns) { clock_ns_.store(ns); }
  /// The most pages of each stream that may be handed out at a time.
  void set_pages(std::size_t pages) { pages_.store(pages); }
  void set_memory_fill(double fill) { memory_fill_.store(fill); }

  std::span<const Fid> links() const override { return links_; }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override {
    auto stream = std::make_unique<Stream>(*this, std::vector<Fid>(links.begin(), links.end()));
    streams_.push_back(stream.get());
    return stream;
  }
  std::unique_ptr<DataStream> open_trigger_list() override {
    auto stream = std::make_unique<Stream>(*this, std::vector<Fid>{kTriggerFid});
    trigger_streams_.push_back(stream.get());
    return stream;
  }
  void start() override {}
  void stop() override { stopped_.store(true); }

  /// True when every page has been handed out and returned.
  bool idle() {
    const std::lock_guard lock(mutex_);
    for (const Stream* stream : streams_) {
      if (stream->pending()) return false;
    }
    return true;
  }

 private:
  static constexpr Fid kTriggerFid{1};

  struct OwnPage : Page {
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::vector<ChunkEntry>> entries;
    std::vector<ChunkRun> list;
  };

  class Stream final : public DataStream {
   public:
    Stream(ScriptedInput& input, std::vector<Fid> links) : input_(input), links_(std::move(links)) {
      for (const Fid link : links_) source_of_.push_back(input.source_of(link));
      cards_ = std::vector<Card>(input.source_count());
    }

    ~Stream() override {
      const std::lock_guard lock(input_.mutex_);
      std::erase(input_.streams_, this);
      std::erase(input_.trigger_streams_, this);
    }

    void add(const std::vector<ScriptedRun>& runs) {
      for (std::uint32_t source = 0; source < cards_.size(); ++source) {
        auto page = std::make_unique<OwnPage>();
        for (const ScriptedRun& run : runs) {
          for (std::size_t i = 0; i < links_.size(); ++i) {
            if (links_[i] == run.fid && source_of_[i] == source) append(*page, run, static_cast<LinkIndex>(i));
          }
        }
        page->runs = page->list;
        page->stream = this;
        if (!page->list.empty()) {
          cards_[source].queue.push_back(std::move(page));
          ++pending_;
        }
      }
    }
    PollStatus poll(Page*& page) override {
      const std::lock_guard lock(input_.mutex_);
      bool more = !input_.stopped_.load();
      for (Card& card : cards_) {
        more = more || card.held;
        if (card.held || card.queue.empty()) continue;
        if (out_.size() >= input_.pages_.load()) return PollStatus::full;
        OwnPage* const next = card.queue.front().get();
        out_[next] = std::move(card.queue.front());
        card.queue.pop_front();
        page = next;
        page->references.store(1);
        return PollStatus::page;
      }
      if (more) return PollStatus::empty;
      if (links_.front() != kTriggerFid && !input_.last_triggers_.empty()) {
        for (Stream* list : input_.trigger_streams_) list->add({ScriptedRun{kTriggerFid, input_.last_triggers_, {}, false}});
        input_.last_triggers_.clear();
      }
      return PollStatus::end;
    }
    std::uint32_t sources() const override { return static_cast<std::uint32_t>(cards_.size()); }
    std::uint32_t source_of(LinkIndex link) const override { return source_of_[link]; }
    bool source_ended(std::uint32_t source) const override {
      const std::lock_guard lock(input_.mutex_);
      return input_.stopped_.load() && cards_[source].queue.empty();
    }
    void hold(std::uint32_t source, bool held) override {
      const std::lock_guard lock(input_.mutex_);
      cards_[source].held = held;
    }
    void release(Page& page) noexcept override {
      const std::lock_guard lock(input_.mutex_);
      --pending_;
      released_.push_back(std::move(out_[static_cast<OwnPage*>(&page)]));
      out_.erase(static_cast<OwnPage*>(&page));
    }
    std::uint64_t clock_ns() const override { return input_.clock_ns_.load(); }
    StreamCounters counters() const override { return {}; }
    double memory_fill() const override { return input_.memory_fill_.load(); }
    bool pending() const { return pending_ != 0; }

   private:
    void append(OwnPage& page, const ScriptedRun& run, LinkIndex link) {
      std::vector<std::byte> memory(64);  // space around the chunks
      std::vector<ChunkEntry> entries;
      bool uniform = run.statuses.empty();
      for (std::size_t i = 0; i < run.chunks.size(); ++i) {
        entries.push_back({static_cast<std::uint32_t>(memory.size()), static_cast<std::uint32_t>(run.chunks[i].size()),
                           run.statuses.empty() ? std::uint8_t{0} : run.statuses[i]});
        memory.insert(memory.end(), run.chunks[i].begin(), run.chunks[i].end());
        memory.resize(memory.size() + 2);
        uniform = uniform && run.chunks[i].size() == run.chunks[0].size();
      }
      memory.resize(memory.size() + 64);
      page.memory.push_back(std::move(memory));
      page.entries.push_back(std::move(entries));
      ChunkRun out;
      out.link = link;
      out.count = static_cast<std::uint32_t>(run.chunks.size());
      out.more_follows = run.more_follows;
      if (uniform && !run.chunks.empty()) {
        out.data = page.memory.back().data() + 64;
        out.size = static_cast<std::uint32_t>(run.chunks[0].size());
        out.stride = out.size + 2;
      } else {
        out.data = page.memory.back().data();
        out.entries = page.entries.back().data();
      }
      page.list.push_back(out);
    }

    ScriptedInput& input_;
    const std::vector<Fid> links_;
    struct Card {
      std::deque<std::unique_ptr<OwnPage>> queue;
      bool held = false;
    };
    std::vector<std::uint32_t> source_of_;  // by link
    std::vector<Card> cards_;
    std::map<OwnPage*, std::unique_ptr<OwnPage>> out_;
    std::vector<std::unique_ptr<OwnPage>> released_;
    std::size_t pending_ = 0;
  };

  std::uint32_t source_of(Fid link) const {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (links_[i] == link) return sources_[i];
    }
    return 0;
  }
  std::uint32_t source_count() const {
    return sources_.empty() ? 1 : 1 + *std::max_element(sources_.begin(), sources_.end());
  }

  std::vector<Fid> links_;
  std::vector<std::uint32_t> sources_;
  std::mutex mutex_;
  std::vector<Stream*> streams_;
  std::vector<Stream*> trigger_streams_;
  std::vector<std::vector<std::byte>> last_triggers_;
  std::atomic<std::uint64_t> clock_ns_{1};
  std::atomic<std::size_t> pages_{~std::size_t{0}};
  std::atomic<double> memory_fill_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace rodeo::test
