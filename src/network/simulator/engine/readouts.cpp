// Readouts: handle arriving requests and acknowledgements, due answers and the senders' timers, in order of time.
#include "network/simulator/engine/engine.h"

#include <algorithm>
#include <cassert>

namespace rodeo::network {

template <bool kTrain>
void SimulationEngine<kTrain>::run_readouts() {
  returned_.clear();
  next_task_ = 0;
  sender_timers_.advance(
      end_, [&](std::uint32_t flow) { return flows_[flow].sender.deadline(); },
      [&](std::uint32_t flow, Picoseconds deadline) {
        flows_[flow].deferred = step_number_;
        tasks_.push_back({deadline, Task::Kind::timer, flow, 0});
      });
  answer_head_.visit_before(end_, [&](std::uint32_t readout) {
    Ring<Answer>& answers = readouts_[readout].answers;
    while (!answers.empty() && answers.front().time < end_) {
      const Answer& one = answers.front();
      flows_[one.flow].deferred = step_number_;
      tasks_.push_back({one.time, Task::Kind::answer, one.flow, one.event});
      answers.pop();
    }
    answer_head_.set(readout, answers.empty() ? kNever : answers.front().time);
  });
  back_head_.visit_before(end_, [&](std::uint32_t number) {
    Node& node = nodes_[number];
    while (!node.back.empty() && node.back.front().time < end_) {
      const Returning one = node.back.front();
      node.back.pop();
      if (kTrain) fetch_sender(node.back.ahead(1)->flow);
      Flow& flow = flows_[one.flow];
      if (one.event == Returning::kNoEvent && one.blocks == 0 && !one.duplicate && flow.sender.quiet() &&
          flow.deferred != step_number_) {
        // This affects one connection only, so it need not wait for its turn.
        ack_.delivered += one.count;
        ack_.delivered_bytes += static_cast<std::uint64_t>(one.count) * sizes_.header;
        Acknowledgement ack;
        ack.cumulative = one.cumulative;
        flow.sender.acknowledge(tcp_, one.time, ack, runs_);
        assert(runs_.empty());
        flow.drop_acknowledged();
        after_sender(one.flow);
        continue;
      }
      flow.deferred = step_number_;
      tasks_.push_back({one.time, Task::Kind::returning, one.flow, static_cast<std::uint32_t>(returned_.size())});
      returned_.push_back({one, {}});
      if (one.blocks != 0) {
        returned_.back().blocks = node.blocks.front();
        node.blocks.pop();
      }
    }
    back_head_.set(number, node.back.empty() ? kNever : node.back.front().time);
  });
  if (tasks_.empty()) return;
  std::sort(tasks_.begin(), tasks_.end());
  while (next_task_ < tasks_.size()) {
    const Task task = tasks_[next_task_++];
    do_task(task);
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::add_task(const Task& task) {
  const auto begin = tasks_.begin() + static_cast<std::ptrdiff_t>(next_task_);
  tasks_.insert(std::upper_bound(begin, tasks_.end(), task), task);
}

template <bool kTrain>
void SimulationEngine<kTrain>::do_task(const Task& task) {
  Flow& flow = flows_[task.flow];
  switch (task.kind) {
    case Task::Kind::returning: on_returning(task.time, returned_[task.what].one, returned_[task.what].blocks); return;
    case Task::Kind::request:
      ++request_.delivered;
      request_.delivered_bytes += sizes_.header + scenario_.traffic.request_bytes;
      on_request(task.time, task.flow, task.what);
      return;
    case Task::Kind::answer:
      --flow.answers;
      answer(task.time, task.flow, task.what);
      return;
    case Task::Kind::timer:
      if (flow.sender.deadline() != task.time) {  // the deadline has moved
        after_sender(task.flow);
        return;
      }
      note(task.time);
      flow.sender.expire(tcp_, task.time, runs_);
      hand_to_card(task.time, task.flow);
      after_sender(task.flow);
      return;
  }
}

template <bool kTrain>
void SimulationEngine<kTrain>::on_returning(Picoseconds now, const Returning& one, const Acknowledgement& blocks) {
  const bool is_request = one.event != Returning::kNoEvent;
  PacketCount& count = is_request ? request_ : ack_;
  count.delivered += one.count;
  count.delivered_bytes += is_request ? sizes_.header + scenario_.traffic.request_bytes
                                      : static_cast<std::uint64_t>(one.count) * ack_bytes(one.blocks);
  if (tcp_.control != CongestionControl::none) {
    Flow& flow = flows_[one.flow];
    Acknowledgement ack = blocks;
    ack.cumulative = one.cumulative;
    ack.blocks = one.blocks;
    ack.duplicate = one.duplicate;
    flow.sender.acknowledge(tcp_, now, ack, runs_);
    flow.drop_acknowledged();
    hand_to_card(now, one.flow);
    after_sender(one.flow);
  }
  if (is_request) on_request(now, one.flow, one.event);
}

template <bool kTrain>
void SimulationEngine<kTrain>::on_request(Picoseconds now, std::uint32_t flow, std::uint32_t event) {
  const Traffic& traffic = scenario_.traffic;
  if (answer_interval_ == 0 && traffic.readout_response_ns == 0 && traffic.readout_jitter_ns == 0) {
    answer(now, flow, event);
    return;
  }
  const std::uint32_t number = readout_of(flow);
  Readout& readout = readouts_[number];
  readout.service_free = std::max(now, readout.service_free) + answer_interval_;
  Picoseconds time = readout.service_free + traffic.readout_response_ns * kPicosecondsPerNanosecond;
  if (traffic.readout_jitter_ns != 0)
    time += readout.jitter.below(traffic.readout_jitter_ns * kPicosecondsPerNanosecond + 1);
  readout.last_answer = std::max(readout.last_answer, time);
  const Answer one{readout.last_answer, flow, event};
  ++flows_[flow].answers;
  if (one.time < end_ && readout.answers.empty()) {
    add_task({one.time, Task::Kind::answer, flow, event});
    return;
  }
  readout.answers.push(one);
  answer_head_.set(number, readout.answers.front().time);
}

template <bool kTrain>
std::uint32_t SimulationEngine<kTrain>::fragment_bytes(const Event& event, std::uint32_t readout) const {
  const std::uint64_t share = event.bytes / readouts_count_;
  return static_cast<std::uint32_t>(share + (readout < event.bytes % readouts_count_ ? 1 : 0));
}

template <bool kTrain>
void SimulationEngine<kTrain>::answer(Picoseconds now, std::uint32_t number, std::uint32_t event) {
  Flow& flow = flows_[number];
  const std::uint32_t bytes = fragment_bytes(events_[event], readout_of(number));
  const std::uint32_t segments = (bytes + sizes_.segment - 1) / sizes_.segment;
  flow.fragments.push({flow.sender.written() + segments, event, bytes - (segments - 1) * sizes_.segment});
  if (flow.fragments.size() == 1) flow.oldest_end = flow.fragments.front().end;
  Receiving& receiving = receiving_[number];
  if (!receiving.arriving) {
    receiving.arriving = true;
    receiving.fragment_end = flow.fragments.back().end;
  }
  flow.sender.write(tcp_, now, segments, runs_);
  if (flow.sender.next() != flow.sender.written()) note(now);
  if (kTrain && segments <= piece_ && runs_.size() == 1 && runs_.front().count == segments &&
      sends_trains(node_of(number))) {
    train_to_card(now, number, runs_.front(), flow.fragments.back().last_payload);
    runs_.clear();
  } else {
    hand_to_card(now, number);
  }
  after_sender(number);
}

template <bool kTrain>
void SimulationEngine<kTrain>::after_sender(std::uint32_t number) {
  const Picoseconds deadline = flows_[number].sender.deadline();
  if (deadline == kNever || (kTrain && long_steps_)) return;  // in long steps acknowledge_train() checks the deadline
  if (deadline < end_) {
    flows_[number].deferred = step_number_;
    add_task({deadline, Task::Kind::timer, number, 0});
  } else {
    sender_timers_.arm(number, deadline);
  }
}

template void SimulationEngine<false>::run_readouts();
template void SimulationEngine<true>::run_readouts();

}  // namespace rodeo::network
