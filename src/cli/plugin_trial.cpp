#include "cli/plugin_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/mapped_file.h"
#include "base/thread.h"
#include "formats/block_decoder.h"
#include "settings/key_value.h"

namespace rodeo::cli {

using settings::convert_value;
using settings::default_value;
using settings::RawValue;

namespace {

constexpr std::size_t kBlocksAtOnce = 256;
constexpr std::size_t kSamples = 5;
// Enough chunks between two readings of the clock to make their cost negligible.
constexpr std::uint64_t kChunksPerClock = 100'000;

/// A component with its answers for the chunks of the current batch.
struct Subject {
  ComponentTrial trial;
  std::unique_ptr<TriggerExtractor> extractor;
  std::unique_ptr<IntegrityChecker> checker;
  std::vector<std::uint32_t> l1ids;
  std::vector<std::uint16_t> bcids;
  std::vector<std::uint8_t> refused;
  std::vector<std::optional<std::uint32_t>> last;  // L1 id by link
  double cpu_seconds = 0;
  std::uint64_t measured = 0;  // chunks

  // Returns the number of leading chunks of [first, first + n) that are accepted, at most n.
  std::uint32_t ask(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::size_t at) {
    const std::uint32_t accepted =
        extractor ? extractor->extract(run, first, n, &l1ids[at], &bcids[at]) : checker->check(run, first, n);
    return std::min(n, accepted);
  }

  void take(const ChunkRun& run, std::size_t at) {
    std::uint32_t most = run.count;
    for (std::uint32_t done = 0; done < run.count;) {
      const std::uint32_t n = std::min(most, run.count - done);
      std::uint32_t accepted = 0;
      try {
        accepted = ask(run, done, n, at + done);
      } catch (const std::exception& thrown) {
        if (!one_by_one(n, most, thrown.what())) continue;
      } catch (...) {
        if (!one_by_one(n, most, "an exception that is not a std::exception")) continue;
      }
      done += accepted;
      if (accepted < n) refused[at + done++] = 1;
    }
  }

  // After an exception for several chunks, asks for one at a time to find the chunk. Returns true if n was one already.
  bool one_by_one(std::uint32_t n, std::uint32_t& most, const char* what) {
    most = 1;
    if (n > 1) return false;
    if (trial.thrown++ == 0) trial.first_thrown = what;
    return true;
  }

  void take_all(std::span<const ChunkRun> runs, std::size_t chunks) {
    refused.assign(chunks, 0);
    l1ids.resize(chunks);
    bcids.resize(chunks);
    std::size_t at = 0;
    for (const ChunkRun& run : runs) {
      take(run, at);
      at += run.count;
    }
  }

  bool follows(std::uint32_t before, std::uint32_t now) const {
    const std::uint32_t mask = trial.fields.l1id_bits >= 32 ? ~0U : (1U << trial.fields.l1id_bits) - 1;
    if (trial.fields.has_ecr && before >> 24 != now >> 24) return (now & mask) == 0;
    return ((before + 1) & mask) == (now & mask);
  }

  void add_up(std::span<const ChunkRun> runs) {
    std::size_t at = 0;
    for (const ChunkRun& run : runs) {
      for (std::uint32_t i = 0; i < run.count; ++i, ++at) {
        if (refused[at] != 0) {
          ++trial.refused;
          continue;
        }
        const bool first = trial.accepted++ == 0;
        if (!extractor) continue;
        const std::uint32_t l1id = l1ids[at];
        trial.smallest_l1id = first ? l1id : std::min(trial.smallest_l1id, l1id);
        trial.largest_l1id = first ? l1id : std::max(trial.largest_l1id, l1id);
        trial.smallest_bcid = first ? bcids[at] : std::min(trial.smallest_bcid, bcids[at]);
        trial.largest_bcid = first ? bcids[at] : std::max(trial.largest_bcid, bcids[at]);
        if (last[run.link] && !follows(*last[run.link], l1id)) {
          ++trial.gaps;
          if (*last[run.link] == l1id) ++trial.repeated;
        }
        last[run.link] = l1id;
      }
    }
  }
};

Result<Parameters> parameters_of(const ComponentInfo& info, const std::vector<std::string>& settings) {
  Parameters parameters;
  for (const Key& key : info.keys) {
    const RawValue* given = nullptr;
    RawValue word;
    word.kind = RawValue::Kind::word;
    for (const std::string& setting : settings) {
      const std::size_t equals = setting.find('=');
      if (setting.substr(0, equals) != key.name || equals == std::string::npos) continue;
      word.text = setting.substr(equals + 1);
      given = &word;
    }
    const std::string path = info.name + "." + key.name;
    auto value = RODEO_TRY(given != nullptr ? convert_value(key, *given, path, ".") : default_value(key, path, "."));
    parameters.set(key.name, std::move(value));
  }
  return parameters;
}

Result<void> check_settings(const std::vector<const ComponentInfo*>& infos, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::string name = setting.substr(0, setting.find('='));
    const auto has_key = [&](const ComponentInfo* info) {
      return std::ranges::find(info->keys, name, &Key::name) != info->keys.end();
    };
    const bool known = std::ranges::any_of(infos, has_key);
    if (known && setting.find('=') != std::string::npos) continue;
    return std::unexpected(
        Error{"config.unknown_key",
              fmt::format("no extractor or checker here has a key for \"{}\"", setting),
              {},
              "write --set KEY=VALUE with a key that `rodeo explain --plugin LIB readout.extractor` shows"});
  }
  return {};
}

using Component = base::ComponentRegistry::Component;

Result<std::vector<const Component*>> components_of(readout::Library& library, const std::string& plugin) {
  const auto& all = library.registry().components();
  const auto tried = [](const Component& one) {
    return one.kind == base::ComponentKind::extractor || one.kind == base::ComponentKind::checker;
  };
  std::vector<const Component*> found;
  for (const auto& one : all) {
    if (tried(*one) && one->info.name == plugin) found.push_back(one.get());
  }
  if (!found.empty()) return found;
  const std::size_t before = all.size();
  RODEO_TRY(library.plugins().load(plugin));
  for (std::size_t i = before; i < all.size(); ++i) {
    if (tried(*all[i])) found.push_back(all[i].get());
  }
  if (found.empty()) {
    return std::unexpected(Error{"cli.nothing_to_try", "the plug-in has neither an extractor nor a checker", plugin,
                                 "`rodeo plugin list` shows its components"});
  }
  return found;
}

Result<std::vector<Subject>> subjects_of(readout::Library& library, const TrialSettings& settings) {
  const auto components = RODEO_TRY(components_of(library, settings.plugin));
  std::vector<const ComponentInfo*> infos;
  for (const Component* one : components) infos.push_back(&one->info);
  RODEO_TRY(check_settings(infos, settings.set));

  std::vector<Subject> subjects;
  for (const Component* one : components) {
    const auto parameters = RODEO_TRY(parameters_of(one->info, settings.set));
    Subject subject;
    subject.trial.kind = one->kind;
    subject.trial.name = one->info.name;
    if (one->kind == base::ComponentKind::extractor) {
      subject.extractor = RODEO_TRY(library.registry().make_extractor(one->info.name, parameters));
      subject.trial.fields = subject.extractor->fields();
    } else {
      subject.checker = RODEO_TRY(library.registry().make_checker(one->info.name, parameters));
    }
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

void add_samples(std::span<const ChunkRun> runs, const std::vector<Subject>& subjects, std::span<const std::uint16_t> elinks,
                 std::vector<ChunkSample>& samples) {
  std::size_t at = 0;
  for (const ChunkRun& run : runs) {
    for (std::uint32_t i = 0; i < run.count && samples.size() < kSamples; ++i) {
      ChunkSample sample;
      sample.elink = elinks[run.link];
      sample.bytes = static_cast<std::uint32_t>(run.chunk(i).size());
      for (const Subject& subject : subjects) {
        if (subject.extractor && !sample.has_trigger) {
          sample.has_trigger = true;
          sample.trigger = {.l1id = subject.l1ids[at + i],
                            .bcid = subject.bcids[at + i],
                            .trigger_type = 0,
                            .valid = subject.refused[at + i] == 0};
        } else if (subject.checker && !sample.checked) {
          sample.checked = true;
          sample.good = subject.refused[at + i] == 0;
        }
      }
      samples.push_back(sample);
    }
    at += run.count;
  }
}

}  // namespace

bool Trial::all_accepted() const {
  return std::ranges::all_of(components, [](const ComponentTrial& one) { return one.refused == 0; });
}

Result<Trial> try_plugin(readout::Library& library, const TrialSettings& settings) {
  auto subjects = RODEO_TRY(subjects_of(library, settings));
  const auto file = RODEO_TRY(base::MappedFile::open(settings.recording.string()));
  auto info = formats::inspect_recording(file.bytes());
  if (!info) {
    info.error().where = settings.recording.string();
    return std::unexpected(info.error());
  }
  Trial trial;
  trial.recording = *std::move(info);
  if (trial.recording.counter(formats::BlockCounter::chunks) == 0) {
    return std::unexpected(
        Error{"readout.no_chunks", "the blocks of the recording contain no chunk", settings.recording.string()});
  }

  const formats::BlockFormat& format = trial.recording.format;
  const auto blocks = file.bytes().first(trial.recording.blocks * format.block_bytes);
  const std::vector<std::uint16_t> elinks = formats::elinks_of(blocks, format);
  const std::uint32_t longest = std::max(trial.recording.largest_chunk_bytes(), 1U);
  for (Subject& subject : subjects) subject.last.resize(elinks.size());
  const double wanted = std::chrono::duration<double>(settings.cost_time).count();
  for (bool first_pass = true;; first_pass = false) {
    formats::BlockDecoder decoder({.format = format, .max_chunk_bytes = longest}, elinks);
    formats::DecodeBuffer buffer(decoder.capacity_for(kBlocksAtOnce));
    bool enough = true;
    for (std::size_t at = 0; at <= blocks.size();) {
      buffer.clear();
      if (at < blocks.size()) {
        at += decoder.decode(blocks.subspan(at, std::min(kBlocksAtOnce * format.block_bytes, blocks.size() - at)), buffer);
      } else {
        decoder.finish(buffer);
        ++at;
      }
      std::uint64_t chunks = 0;
      for (const ChunkRun& run : buffer.runs()) chunks += run.count;
      if (chunks == 0) continue;
      enough = true;
      for (Subject& subject : subjects) {
        if (first_pass) {
          subject.take_all(buffer.runs(), chunks);
          subject.add_up(buffer.runs());
        }
        if (subject.cpu_seconds >= wanted && subject.measured > 0) continue;
        const std::uint64_t thrown = subject.trial.thrown;
        const std::uint64_t repetitions = 1 + kChunksPerClock / chunks;
        const double begin = base::thread_cpu_seconds();
        for (std::uint64_t i = 0; i < repetitions; ++i) subject.take_all(buffer.runs(), chunks);
        subject.cpu_seconds += base::thread_cpu_seconds() - begin;
        subject.measured += repetitions * chunks;
        subject.trial.thrown = thrown;
        enough = enough && subject.cpu_seconds >= wanted;
      }
      if (first_pass && trial.samples.size() < kSamples) add_samples(buffer.runs(), subjects, elinks, trial.samples);
      if (!first_pass && enough) break;
    }
    if (std::ranges::all_of(subjects, [&](const Subject& subject) { return subject.cpu_seconds >= wanted; })) break;
  }
  RODEO_TRY(file.check());
  for (Subject& subject : subjects) {
    subject.trial.ns_per_chunk = subject.cpu_seconds * 1e9 / static_cast<double>(subject.measured);
    trial.components.push_back(std::move(subject.trial));
  }
  return trial;
}

}  // namespace rodeo::cli
