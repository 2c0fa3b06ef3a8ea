// An input whose pages a test writes by hand: what comes, in which order, on which clock.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "rodeo/input.h"

namespace rodeo::test {

/// Chunks of one link, in one piece of memory of their own.
struct ScriptedRun {
  Fid fid;
  std::vector<std::vector<std::byte>> chunks;
  std::vector<std::uint8_t> statuses;  ///< empty: all ok
  bool more_follows = false;
};

/// Everything a worker needs of an input; pages appear in the order of push() and the clock stands where it is set.
class ScriptedInput final : public DataInput {
 public:
  explicit ScriptedInput(std::vector<Fid> links) : links_(std::move(links)) {}

  /// One page with these runs for each stream that carries their links. Any thread.
  void push(const std::vector<ScriptedRun>& runs) {
    const std::lock_guard lock(mutex_);
    for (Stream* stream : streams_) stream->add(runs);
  }
  /// A page of the trigger's own list.
  void push_triggers(const std::vector<std::vector<std::byte>>& packets) {
    const std::lock_guard lock(mutex_);
    for (Stream* stream : trigger_streams_) stream->add({ScriptedRun{kTriggerFid, packets, {}, false}});
  }
  void set_clock(std::uint64_t ns) { clock_ns_.store(ns); }

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

  /// True when every page has been handed out and given back.
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
    Stream(ScriptedInput& input, std::vector<Fid> links) : input_(input), links_(std::move(links)) {}

    ~Stream() override {
      const std::lock_guard lock(input_.mutex_);
      std::erase(input_.streams_, this);
      std::erase(input_.trigger_streams_, this);
    }

    void add(const std::vector<ScriptedRun>& runs) {
      auto page = std::make_unique<OwnPage>();
      for (const ScriptedRun& run : runs) {
        for (std::size_t i = 0; i < links_.size(); ++i) {
          if (links_[i] == run.fid) append(*page, run, static_cast<LinkIndex>(i));
        }
      }
      page->runs = page->list;
      page->stream = this;
      if (!page->list.empty()) {
        queue_.push_back(std::move(page));
        ++pending_;
      }
    }
    PollStatus poll(Page*& page) override {
      const std::lock_guard lock(input_.mutex_);
      if (queue_.empty()) return input_.stopped_.load() ? PollStatus::end : PollStatus::empty;
      OwnPage* const next = queue_.front().get();
      out_[next] = std::move(queue_.front());
      queue_.pop_front();
      page = next;
      page->references.store(1);
      return PollStatus::page;
    }
    void release(Page& page) noexcept override {
      const std::lock_guard lock(input_.mutex_);
      --pending_;
      released_.push_back(std::move(out_[static_cast<OwnPage*>(&page)]));
      out_.erase(static_cast<OwnPage*>(&page));
    }
    std::uint64_t clock_ns() const override { return input_.clock_ns_.load(); }
    StreamCounters counters() const override { return {}; }
    bool pending() const { return pending_ != 0; }

   private:
    void append(OwnPage& page, const ScriptedRun& run, LinkIndex link) {
      std::vector<std::byte> memory(64);  // what lies around chunks is nobody's
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
    std::deque<std::unique_ptr<OwnPage>> queue_;
    std::map<OwnPage*, std::unique_ptr<OwnPage>> out_;
    std::vector<std::unique_ptr<OwnPage>> released_;
    std::size_t pending_ = 0;
  };

  std::vector<Fid> links_;
  std::mutex mutex_;
  std::vector<Stream*> streams_;
  std::vector<Stream*> trigger_streams_;
  std::atomic<std::uint64_t> clock_ns_{1};
  std::atomic<bool> stopped_{false};
};

}  // namespace rodeo::test
