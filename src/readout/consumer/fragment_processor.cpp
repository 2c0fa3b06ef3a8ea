#include "readout/consumer/fragment_processor.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/counters.h"
#include "base/named_counters.h"
#include "base/registry.h"

namespace rodeo::readout {
namespace {

enum class WorkCount : std::uint8_t { threw, too_large, waited_for_copy, count };

}  // namespace

class FragmentProcessor::ProcessorWorker final : public Worker {
 public:
  ProcessorWorker(FragmentProcessor& processor, FragmentWork& work) : processor_(processor), work_(work) {
    if (work.read_only() && work.wants_contiguous()) {
      scratch_ = std::make_unique<std::byte[]>(processor.settings_.max_payload_bytes);
    }
  }

  void work(FragmentPtr fragment) override {
    if (work_.read_only()) {
      look(*fragment);
    } else if (work_.wants_contiguous() || !fragment->writable) {
      if (FragmentPtr copy = copy_of(*fragment)) {
        fragment = std::move(copy);
        process(*fragment);
      }
    } else {
      process(*fragment);
    }
    processor_.pass_on(std::move(fragment));
  }

  std::uint64_t read(WorkCount counter) const { return counters_.read(counter); }

 private:
  void look(Fragment& fragment) {
    if (!work_.wants_contiguous() || fragment.part_count == 1) {
      process(fragment);
      return;
    }
    const std::size_t size = fragment.payload_bytes();
    if (size > processor_.settings_.max_payload_bytes) {
      refuse(fragment);
      return;
    }
    FragmentPart part{scratch_.get(), fragment.copy_to(scratch_.get())};
    copy_identity(fragment, view_);
    view_.parts = &part;
    view_.part_count = 1;
    process(view_);
    fragment.status = view_.status;
  }

  // Waits until a copy returns from the end of the list. This is back-pressure, as with a full queue.
  FragmentPtr copy_of(Fragment& fragment) {
    if (fragment.payload_bytes() > processor_.settings_.max_payload_bytes) {
      refuse(fragment);
      return {};
    }
    FragmentPtr copy = processor_.copies_->copy(fragment);
    if (!copy) {
      counters_.add(WorkCount::waited_for_copy);
      base::Backoff backoff(processor_.settings_.queue.idle);
      while (!(copy = processor_.copies_->copy(fragment))) backoff.idle();
    }
    return copy;
  }

  void refuse(Fragment& fragment) {
    fragment.status |= fragment_status::kOverflow;
    counters_.add(WorkCount::too_large);
  }

  void process(Fragment& fragment) {
    try {
      work_.process(fragment);
    } catch (const std::exception& problem) {
      threw(fragment, problem.what());
    } catch (...) {
      threw(fragment, "unknown exception");
    }
  }

  void threw(Fragment& fragment, std::string_view what) {
    fragment.status |= fragment_status::kDataCorruption;
    counters_.add(WorkCount::threw);
    if (const auto turn = processor_.log_.turn()) {
      base::log_error("{}: work threw on L1 id {:#010x}: {}{}", processor_.settings().name, fragment.l1id.value, what,
                      turn.suffix());
    }
  }

  FragmentProcessor& processor_;
  FragmentWork& work_;
  Fragment view_;
  std::unique_ptr<std::byte[]> scratch_;
  base::CounterBlock<WorkCount> counters_;
};

FragmentProcessor::FragmentProcessor(ProcessorSettings settings,
                                     const std::function<std::unique_ptr<FragmentWork>()>& make_work)
    : QueuedConsumer(settings.queue), settings_(std::move(settings)) {
  for (unsigned i = 0; i < seats(); ++i) {
    works_.push_back(make_work());
    works_.back()->set_max_payload(settings_.max_payload_bytes);
  }
  if (!works_.front()->read_only()) {
    copies_ = std::make_unique<FragmentCopies>(settings_.copies, settings_.max_payload_bytes);
  }
  for (const auto& work : works_) {
    made_.push_back(std::make_unique<ProcessorWorker>(*this, *work));
    workers_.push_back(made_.back().get());
  }
}

FragmentProcessor::~FragmentProcessor() { stop(); }

std::unique_ptr<QueuedConsumer::Worker> FragmentProcessor::make_worker(unsigned index) { return std::move(made_[index]); }

FragmentConsumer::Status FragmentProcessor::status() const {
  Status out = QueuedConsumer::status();
  std::uint64_t threw = 0;
  std::uint64_t too_large = 0;
  std::uint64_t waited = 0;
  for (const ProcessorWorker* worker : workers_) {
    threw += worker->read(WorkCount::threw);
    too_large += worker->read(WorkCount::too_large);
    waited += worker->read(WorkCount::waited_for_copy);
  }
  out.counters.push_back({"work_threw", threw});
  out.counters.push_back({"too_large_for_work", too_large});
  out.counters.push_back({"waited_for_copy", waited});
  std::vector<NamedCounter> of_works;
  for (const auto& work : works_) {
    for (const NamedCounter& counter : work->counters()) {
      const bool number = counter.name == "first_wrong_l1id" || counter.name == "first_wrong_link_id";
      if (!number || base::find_counter(of_works, counter.name) == nullptr) base::add_counter(of_works, counter);
    }
  }
  std::ranges::move(of_works, std::back_inserter(out.counters));
  return out;
}

namespace {

/// The values of the configuration. The key `work` names a component; the keys of that component are in the same table.
struct ProcessorKeys : ProcessorSettings {
  std::string work = "release";
};

const Settings<ProcessorKeys>& processor_settings() {
  using P = ProcessorKeys;
  static const Settings<P> settings{
      setting(&P::queue, queue_settings()),
      setting(
          &P::work, "work",
          "The work on each fragment: verify, read, release, or the work of a plug-in. The work's own keys are in the same "
          "table."),
      setting(&P::max_payload_bytes, "max_payload",
              "Largest payload of a fragment that has to be copied for its work, or that its work may make by resizing.",
              {.minimum = 64, .maximum = 1 << 30, .unit = Unit::bytes}),
      setting(&P::copies, "copies",
              "Most copied fragments at a time, for works that write into a contiguous or copied "
              "payload.",
              {.minimum = 1, .maximum = 1 << 20}),
  };
  return settings;
}

}  // namespace

std::vector<Key> FragmentProcessor::keys() { return processor_settings().keys(); }

std::unique_ptr<FragmentConsumer> FragmentProcessor::create(const Parameters& parameters, const Registry& registry) {
  const auto* components = dynamic_cast<const base::ComponentRegistry*>(&registry);
  if (components == nullptr) throw std::logic_error("a processor needs the registry of the application");
  ProcessorKeys keys = processor_settings().read(parameters);
  keys.queue.name = parameters.has("name") ? parameters.text("name") : "processor";
  const auto make_work = [&] {
    Result<std::unique_ptr<FragmentWork>> work = components->make_work(keys.work, parameters);
    if (!work) throw SetupError(work.error());
    return std::move(*work);
  };
  return std::make_unique<FragmentProcessor>(std::move(keys), make_work);
}

}  // namespace rodeo::readout
