// rodeo._data: data files and sampled events for Python. Users import rodeo.data and rodeo.events.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../errors.h"
#include "file_set.h"
#include "python_event.h"
#include "readout/consumer/sample_client.h"
#ifndef RODEO_WHEEL
#include "readout/consumer/event_subscriber.h"
#endif

namespace rodeo::python::data {
namespace {

namespace nb = nanobind;

PyObject* data_error = nullptr;     // rodeo.data.DataError
PyObject* damaged_event = nullptr;  // rodeo.data.DamagedEvent, a subclass of DataError

/// Any bytes as readable text.
nb::object text(std::string_view bytes) {
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
}
nb::object path_object(std::string_view path) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

nb::object exception_of(const Fault& fault) {
  const nb::handle type = fault.event ? damaged_event : data_error;
  nb::object made = type(text(fault.error.message()));
  made.attr("code") = fault.error.code;
  made.attr("reason") = text(fault.error.what);
  made.attr("file") = path_object(fault.path);
  made.attr("index") = fault.event;
  made.attr("offset") = fault.offset;
  made.attr("l1_id") = fault.l1id;
  return made;
}

/// Locks the set. It does not hold the GIL while it waits.
class Locked {
 public:
  explicit Locked(FileSet& files) : lock_(files.mutex, std::defer_lock) {
    if (lock_.try_lock()) return;
    const nb::gil_scoped_release released;
    lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// For work without the GIL. Taking the GIL here cannot deadlock: no thread waits for the set while it holds the GIL.
void look_for_signals() {
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// Checks for signals, then does work without the GIL.
template <typename Work>
auto apart(FileSet& files, Work&& work) {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  const nb::gil_scoped_release released;
  const std::lock_guard guard(files.mutex);
  return work();
}

/// An owner that releases the memory of an array.
nb::capsule keeper(Memory memory) {
  auto kept = std::make_unique<Memory>(std::move(memory));
  nb::capsule owner(kept.get(), [](void* held) noexcept { delete static_cast<Memory*>(held); });
  (void)kept.release();
  return owner;
}

nb::object made_array(Memory memory, std::size_t rows, Width width) {
  void* const data = memory.get();
  static std::uint64_t nothing = 0;
  nb::object owner = nb::none();
  if (data != nullptr) owner = keeper(std::move(memory));
  const auto array = [&]<typename T>(T* first) {
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(first, {rows}, owner), nb::rv_policy::reference);
  };
  void* const first = data == nullptr ? &nothing : data;
  switch (width) {
    case Width::u16: return array(static_cast<std::uint16_t*>(first));
    case Width::u32: return array(static_cast<std::uint32_t*>(first));
    case Width::u64: return array(static_cast<std::uint64_t*>(first));
    case Width::i64: break;
  }
  return array(static_cast<std::int64_t*>(first));
}

void add_columns(nb::dict& out, Table& table) {
  for (std::size_t i = 0; i < table.fields().size(); ++i) {
    if (!table.has(i)) continue;
    const FieldInfo& info = table.fields()[i];
    out[nb::str(info.name.data(), info.name.size())] = made_array(table.take(i), table.rows(), info.width);
  }
}

void add_offsets(nb::dict& out, const char* name, Table& table) {
  if (table.has(0)) out[name] = made_array(table.take(0), table.rows(), Width::i64);
}

nb::dict to_python(Columns& columns) {
  nb::dict out;
  add_columns(out, columns.events);
  add_columns(out, columns.fragments);
  add_columns(out, columns.chunks);
  if (columns.wanted.chunk_data) {
    const std::size_t bytes = columns.data.size();
    Memory memory = columns.data.take();
    static std::uint8_t nothing = 0;
    auto* const first = reinterpret_cast<std::uint8_t*>(memory.get());
    nb::object owner = nb::none();
    if (first != nullptr) owner = keeper(std::move(memory));
    out["chunk.data"] =
        nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(first == nullptr ? &nothing : first, {bytes}, owner),
                 nb::rv_policy::reference);
  }
  out["events"] = columns.events.rows();
  add_offsets(out, "fragment.offsets", columns.event_fragments);
  add_offsets(out, "chunk.offsets", columns.event_chunks);
  add_offsets(out, "fragment.chunk_offsets", columns.fragment_chunks);
  add_offsets(out, "chunk.data_offsets", columns.chunk_data_offsets);
  return out;
}

/// Walks along the events [start, stop) of a set in steps.
class Cursor {
 public:
  Cursor(std::shared_ptr<FileSet> files, std::uint64_t start, std::optional<std::uint64_t> stop, std::uint64_t step)
      : files_(std::move(files)),
        walk_{.index = start, .stop = stop.value_or(std::numeric_limits<std::uint64_t>::max()), .step = step} {}

  std::optional<PyEvent> next() {
    const Locked locked(*files_);
    if (!find_start()) return std::nullopt;
    auto parts = files_->next(walk_);
    if (!parts) return std::nullopt;
    return PyEvent{std::move(parts)};
  }

  /// Columns of up to `most` events; no events at the end. `hold`: events before an error are returned, and the next call
  /// throws.
  nb::object read(const std::vector<std::string>& fields, std::uint64_t most, bool hold) {
    WantedColumns wanted;
    for (const std::string& name : fields) {
      if (!wanted.add(name)) throw nb::value_error(("there is no field " + name).c_str());
    }
    if (held_) throw FaultError(*std::exchange(held_, std::nullopt));
    Columns columns(wanted);
    try {
      bool more = apart(*files_, [&] { return find_start(); });
      while (more && columns.events.rows() < most) {
        constexpr std::uint64_t kBetweenSignals = 2048;
        more = apart(*files_, [&] {
          return files_->append(walk_, std::min(kBetweenSignals, most - columns.events.rows()), columns);
        });
      }
    } catch (const FaultError& error) {
      if (!hold || columns.events.rows() == 0) throw;
      held_ = error.fault;
    }
    return to_python(columns);
  }

 private:
  bool find_start() {
    if (found_) return true;
    if (walk_.index == 0) return found_ = true;
    const auto place = files_->place(walk_.index);
    if (place) walk_.at = *place;
    return found_ = place.has_value();
  }

  std::shared_ptr<FileSet> files_;
  Walk walk_;
  std::optional<Fault> held_;
  bool found_ = false;
};

nb::object event_or_none(std::shared_ptr<EventParts> parts) {
  return parts ? nb::cast(PyEvent{std::move(parts)}) : nb::none();
}

nb::dict file_info(FileSet& files, std::size_t number) {
  nb::dict out;
  const Locked locked(files);
  DataFile* const file = files.open(number);
  out["path"] = path_object(files.path(number));
  if (file == nullptr) return out;
  out["kind"] = file->kind();
  out["closed"] = file->closed();
  if (const formats::DecodedFileHeader* const header = file->header()) {
    out["version"] = header->version;
    out["file_number"] = header->file_number;
    out["opened"] = header->opened.text();
    out["application"] = text(header->application);
    out["core_name"] = text(header->core_name);
    nb::list strings;
    for (const std::string& one : header->free_strings) strings.append(text(one));
    out["free_strings"] = strings;
    out["run_number"] = header->run.run_number;
    out["max_events"] = header->run.max_events;
    out["trigger_type"] = header->run.trigger_type;
    out["detector_mask"] = std::vector<std::uint32_t>(header->run.detector_mask.begin(), header->run.detector_mask.end());
    out["beam_type"] = header->run.beam_type;
    out["beam_energy"] = header->run.beam_energy;
  }
  if (const formats::FileEnd* const end = file->end()) {
    out["closed_at"] = end->closed.text();
    out["events"] = end->blocks_in_file;
    out["last_file"] = end->last_file == 1;
  }
  return out;
}

/// Sampled events of a running readout. One thread at a time.
class Sampler {
 public:
  Sampler(const std::string& name, const std::string& socket)
      : client_(unwrap(socket.empty() ? readout::SampleClient::connect(name) : readout::SampleClient::connect_to(socket))) {}
#ifndef RODEO_WHEEL
  explicit Sampler(const readout::EventSubscriberSettings& from)
      : client_(unwrap(readout::EventSubscriber::subscribe(from))) {}
#endif

  /// A tuple of event, sequence number, time in ns, and number missed before it; or a bool: whether the run is over.
  nb::object next(double timeout_s) {
    using Clock = std::chrono::steady_clock;
    constexpr double kMostSeconds = 1e9;  // within the range of a clock
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::clamp(timeout_s, 0.0, kMostSeconds)));
    readout::Sample sample;
    for (;;) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      auto outcome = readout::SampleClient::Outcome::nothing;
      {
        const nb::gil_scoped_release released;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
        const auto patience = std::clamp(left, std::chrono::milliseconds{0}, std::chrono::milliseconds{100});
        outcome = std::visit([&](auto& client) { return unwrap(client.next(sample, patience)); }, client_);
      }
      if (outcome == readout::SampleClient::Outcome::end) return nb::cast(true);
      if (outcome == readout::SampleClient::Outcome::sample) break;
      if (Clock::now() >= end) return nb::cast(false);
    }
    auto parts = std::make_shared<EventParts>();
    parts->block = std::move(sample.event);
    parts->raw = parts->block;
    parts->index = sample.header.sequence;
    if (const auto whole = parts->take_apart({}); !whole) {
      throw FaultError({.error = {"data.damaged", "a sampled event is damaged: " + whole.error().message(), "", ""},
                        .event = sample.header.sequence});
    }
    return nb::make_tuple(PyEvent{std::move(parts)}, sample.header.sequence, sample.header.unix_ns, sample.header.missed);
  }

 private:
#ifdef RODEO_WHEEL
  std::variant<readout::SampleClient> client_;
#else
  std::variant<readout::SampleClient, readout::EventSubscriber> client_;
#endif
};

void bind_files(nb::module_& module) {
  nb::class_<FileSet>(module, "Files")
      .def_static(
          "make",
          [](const std::vector<nb::bytes>& paths, bool checksums, bool keep_index, bool skip, bool follow,
             std::uint32_t l1id_offset, std::uint32_t l1id_bits) {
            std::vector<std::string> names;
            names.reserve(paths.size());
            for (const nb::bytes& path : paths) names.emplace_back(path.c_str(), path.size());
            const FileOptions options{checksums, keep_index, l1id_offset, l1id_bits, &look_for_signals};
            return std::make_shared<FileSet>(std::move(names), options, skip, follow);
          },
          nb::arg("paths"), nb::kw_only(), nb::arg("checksums"), nb::arg("keep_index"), nb::arg("skip"), nb::arg("follow"),
          nb::arg("l1_id_offset"), nb::arg("l1_id_bits"))
      .def("add",
           [](FileSet& self, const nb::bytes& path) {
             const Locked locked(self);
             self.add(std::string(path.c_str(), path.size()));
           })
      .def("check", [](FileSet& self, std::size_t file) { apart(self, [&] { return self.open(file) != nullptr; }); })
      .def("count",
           [](FileSet& self) {
             std::uint64_t events = 0;
             std::size_t files = 0;
             {
               const Locked locked(self);
               files = self.files();
             }
             for (std::size_t i = 0; i < files;) {
               events = apart(self, [&] {
                 constexpr std::size_t kBetweenSignals = 64;
                 i = std::min(i + kBetweenSignals, files);
                 return self.before(i);
               });
             }
             return events;
           })
      .def("before", [](FileSet& self, std::size_t file) { return apart(self, [&] { return self.before(file); }); })
      .def("event",
           [](FileSet& self, std::uint64_t index) {
             return event_or_none(apart(self, [&]() -> std::shared_ptr<EventParts> {
               const auto place = self.place(index);
               return place ? self.event(*place) : nullptr;
             }));
           })
      .def("find",
           [](FileSet& self, std::uint32_t l1id) {
             std::vector<std::uint64_t> found;
             apart(self, [&] {
               for (const Place& place : self.find(l1id)) found.push_back(self.before(place.file) + place.event);
             });
             return found;
           })
      .def("info", &file_info)
      .def("errors",
           [](FileSet& self) {
             const Locked locked(self);
             nb::list errors;
             for (const Fault& fault : self.errors()) errors.append(exception_of(fault));
             return errors;
           })
      .def("error_count",
           [](FileSet& self) {
             const Locked locked(self);
             return self.error_count();
           })
      // For a followed file: the event, or None if it does not exist yet. Then closed() tells whether it can still come.
      .def("event_in",
           [](FileSet& self, std::size_t file, std::size_t event) {
             return event_or_none(apart(self, [&] { return self.event({file, event}); }));
           })
      .def("grow",
           [](FileSet& self, std::size_t file) {
             apart(self, [&] {
               if (DataFile* const opened = self.open(file)) opened->grow();
             });
           })
      .def("closed", [](FileSet& self, std::size_t file) { return apart(self, [&] { return self.closed(file); }); })
      .def("last_of_sequence", [](FileSet& self, std::size_t file) {
        return apart(self, [&] {
          const DataFile* const opened = self.open(file);
          return opened == nullptr || opened->last_of_sequence();
        });
      });

  nb::class_<Cursor>(module, "Cursor")
      .def(nb::init<std::shared_ptr<FileSet>, std::uint64_t, std::optional<std::uint64_t>, std::uint64_t>(),
           nb::arg("files"), nb::arg("start"), nb::arg("stop").none(), nb::arg("step"))
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__",
           [](Cursor& self) {
             auto event = self.next();
             if (!event) throw nb::stop_iteration();
             return *std::move(event);
           })
      .def("read", &Cursor::read, nb::arg("fields"), nb::arg("most"), nb::arg("hold") = false);

  nb::class_<Sampler>(module, "Sampler")
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("name"), nb::arg("socket"))
#ifndef RODEO_WHEEL
      .def_static(
          "from_network",
          [](const std::string& stream, const std::string& bus, const std::string& provider,
             const std::string& secret_file) {
            const nb::gil_scoped_release released;
            return std::make_unique<Sampler>(readout::EventSubscriberSettings{
                .bus = bus, .stream = stream, .name = "python", .provider = provider, .secret_file = secret_file});
          },
          nb::arg("stream"), nb::kw_only(), nb::arg("bus"), nb::arg("provider"), nb::arg("secret_file"))
#endif
      .def("next", &Sampler::next, nb::arg("timeout_s"));
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const auto fields : {std::span<const FieldInfo>(kEventFields), std::span<const FieldInfo>(kFragmentFields),
                            std::span<const FieldInfo>(kChunkFields)}) {
    for (const FieldInfo& field : fields) names.emplace_back(field.name);
  }
  names.emplace_back("chunk.data");
  return names;
}

}  // namespace

NB_MODULE(_data, module) {
  nb::set_leak_warnings(false);  // global variables may hold events until the program ends
  data_error = PyErr_NewExceptionWithDoc("rodeo.data.DataError", "A data file that cannot be read, or not to its end.",
                                         PyExc_ValueError, nullptr);
  damaged_event = PyErr_NewExceptionWithDoc("rodeo.data.DamagedEvent", "One damaged event; the others can be read.",
                                            data_error, nullptr);
  module.attr("DataError") = nb::handle(data_error);
  module.attr("DamagedEvent") = nb::handle(damaged_event);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const FaultError& error) {
      const nb::object made = exception_of(error.fault);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
    }
  });
  module.attr("FIELDS") = nb::cast(field_names());
  bind_events(module);
  bind_files(module);
}

}  // namespace rodeo::python::data
