// Small components that record the application's calls. They test the order of calls, not data.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/registry.h"
#include "readout/settings.h"

namespace rodeo::readout::testing {

/// The calls in order, and instructions for the components.
struct Script {
  std::mutex mutex;
  std::vector<std::string> calls;
  std::uint64_t events = 0;  ///< the input ends by itself after this number of events; 0: it runs until stop()
  std::atomic<bool> fail_consumer{false};
  std::atomic<bool> fail_stop{false};  ///< the first consumer throws at the end
  std::atomic<bool> fail_input{false};
  std::atomic<bool> refuse_start{false};
  std::atomic<bool> hold_stop{false};        ///< the first consumer does not end
  std::atomic<bool> builder_is_slow{false};  ///< the builder has not obeyed yet
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> duplicates{0};
  std::vector<BuilderLink> links_seen;
  std::atomic<std::uint64_t> link_missing{0};
  std::atomic<std::uint64_t> link_chunks{0};

  void note(std::string call) {
    const std::lock_guard lock(mutex);
    calls.push_back(std::move(call));
  }
  std::vector<std::string> noted() {
    const std::lock_guard lock(mutex);
    return calls;
  }
};

class EndlessStream final : public DataStream {
 public:
  explicit EndlessStream(std::atomic<bool>& ended) : ended_(ended) {}
  PollStatus poll(Page*&) override { return ended_ ? PollStatus::end : PollStatus::empty; }
  void release(Page&) noexcept override {}
  std::uint64_t clock_ns() const override { return 0; }
  StreamCounters counters() const override { return {}; }

 private:
  std::atomic<bool>& ended_;
};

class RecordingInput final : public DataInput {
 public:
  explicit RecordingInput(Script& script) : script_(script) {
    for (std::uint32_t i = 0; i < 4; ++i) links_.push_back(Fid::of(0, 1, 0, i));
  }
  ~RecordingInput() override { script_.note("input destroyed"); }
  std::span<const Fid> links() const override { return links_; }
  std::unique_ptr<DataStream> open(std::span<const Fid>) override { return std::make_unique<EndlessStream>(ended_); }
  std::string failure() const override { return script_.fail_input ? "The card is gone." : ""; }
  void start() override {
    script_.note("input started");
    if (script_.events != 0) ended_ = true;
  }
  void stop() override {
    if (!ended_) script_.note("input stopped");  // note this before the builder sees the end
    ended_ = true;
  }
  std::vector<NamedCounter> counters() const override { return {{"sent", 0}, {"triggers", 0}, {"vetoed", 0}}; }

 private:
  Script& script_;
  std::vector<Fid> links_;
  std::atomic<bool> ended_{false};
};

class RecordingBuilder final : public FragmentBuilder {
 public:
  RecordingBuilder(Script& script, const BuilderContext& context)
      : script_(script), links_(context.links.begin(), context.links.end()), extractor_(context.make_extractor()) {
    script_.links_seen = links_;
    std::vector<Fid> fids;
    for (const BuilderLink& link : links_) fids.push_back(link.fid);
    stream_ = context.input->open(fids);
    removed_ = std::vector<bool>(links_.size(), false);
  }
  ~RecordingBuilder() override { script_.note("builder destroyed"); }
  void start() override { script_.note("builder started"); }
  void join() override {
    Page* page = nullptr;
    while (stream_->poll(page) != PollStatus::end) std::this_thread::yield();
    script_.note("builder joined");
  }
  bool set_link(Fid fid, LinkState state) override {
    if (script_.builder_is_slow) return true;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].fid == fid) removed_[i] = state == LinkState::removed;
    }
    return true;
  }
  Status status() const override {
    Status out;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      out.links.push_back({.fid = links_[i].fid, .state = removed_[i] ? LinkState::removed : LinkState::active});
    }
    out.links.front().missing = script_.link_missing;
    out.links.front().chunks = script_.link_chunks;
    out.chunks_received = script_.received;
    out.lost = {{"duplicate", script_.duplicates}};
    return out;
  }

 private:
  Script& script_;
  std::vector<BuilderLink> links_;
  std::unique_ptr<TriggerExtractor> extractor_;
  std::unique_ptr<DataStream> stream_;
  std::vector<bool> removed_;
};

class RecordingConsumer final : public FragmentConsumer {
 public:
  RecordingConsumer(Script& script, std::string name) : script_(script), name_(std::move(name)) {}
  ~RecordingConsumer() override { script_.note(name_ + " destroyed"); }
  void insert(FragmentPtr fragment) override { forward(std::move(fragment)); }
  void start() override {
    if (script_.refuse_start && name_ == "second") throw std::runtime_error("the second does not want to start");
    script_.note(name_ + " started");
  }
  void give_up() override {
    script_.hold_stop = false;
    script_.hold_stop.notify_all();
  }
  void stop() override {
    if (script_.hold_stop && name_ == "first") {
      script_.note("first holds");
      script_.hold_stop.wait(true);
    }
    script_.note(name_ + " stopped");
    if (script_.fail_stop && name_ == "first") throw std::runtime_error("the last block was not written");
  }
  Status status() const override {
    Status out;
    out.name = name_;
    if (script_.fail_consumer && name_ == "second") out.failure = "the disk is full";
    return out;
  }

 private:
  Script& script_;
  std::string name_;
};

inline TriggerInfo no_trigger(std::span<const std::byte>) { return {}; }

/// Registers "in", "build", "first", "second" and "extract", all writing to `script`.
inline void register_recording(base::ComponentRegistry& registry, Script& script) {
  const auto added = registry.add_library("test", [&](Registry& r) {
    r.add_input({.name = "in", .help = "for tests"},
                [&](const Parameters&) { return std::make_unique<RecordingInput>(script); });
    r.add_builder({.name = "build", .help = "for tests"}, [&](const Parameters&, const BuilderContext& context) {
      return std::make_unique<RecordingBuilder>(script, context);
    });
    for (const char* name : {"first", "second"}) {
      r.add_consumer({.name = name, .help = "for tests"},
                     [&, name](const Parameters&) { return std::make_unique<RecordingConsumer>(script, name); });
    }
    r.add_extractor({.name = "extract", .help = "for tests"}, {.l1id_bits = 24}, &no_trigger);
  });
  if (!added) throw std::runtime_error(added.error().message());
}

inline ReadoutSettings recording_settings() {
  ReadoutSettings settings;
  settings.input = {.type = "in", .name = "in", .parameters = {}, .where = "test.toml:1:1"};
  settings.builder = {.type = "build", .name = "builder", .parameters = {}, .where = "test.toml:2:1"};
  settings.extractor = {.type = "extract", .name = "extract", .parameters = {}, .where = ""};
  settings.consumers = {{.type = "first", .name = "first", .parameters = {}, .where = ""},
                        {.type = "second", .name = "second", .parameters = {}, .where = ""}};
  settings.robs = {
      {.source_id = SourceId{0x610001}, .links = {}, .link_ids = {}, .links_per_group = 0, .where = "test.toml:3:1"}};
  return settings;
}

}  // namespace rodeo::readout::testing
