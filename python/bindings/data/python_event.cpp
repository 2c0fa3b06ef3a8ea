#include "python_event.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include "../errors.h"
#include "formats/event_names.h"
#include "formats/fid.h"
#include "formats/stream_tags.h"

namespace rodeo::python::data {
namespace {

namespace nb = nanobind;
using namespace formats;

struct PyFragment {
  std::shared_ptr<const EventParts> parts;
  std::size_t number = 0;
  const FragmentParts& operator*() const { return parts->fragments[number]; }
  const FragmentParts* operator->() const { return &parts->fragments[number]; }
};

/// An owner that keeps the event, and so the mapped file, as long as an array exists.
nb::capsule keeper(const std::shared_ptr<const EventParts>& parts) {
  using Kept = std::shared_ptr<const EventParts>;
  auto kept = std::make_unique<Kept>(parts);
  nb::capsule owner(kept.get(), [](void* memory) noexcept { delete static_cast<Kept*>(memory); });
  (void)kept.release();
  return owner;
}

template <typename T>
nb::object view(const T* data, std::size_t count, const nb::capsule& owner, std::int64_t stride = 1) {
  static constexpr T kNothing{};
  const nb::ndarray<nb::numpy, const T, nb::ndim<1>> array(count == 0 ? &kNothing : data, {count}, owner, {stride});
  return nb::cast(array, nb::rv_policy::reference);
}

nb::object bytes_view(std::span<const std::byte> bytes, const std::shared_ptr<const EventParts>& parts) {
  return view(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), keeper(parts));
}

/// The concatenated chunks of a recording's event.
nb::object gathered(const std::shared_ptr<const EventParts>& parts) {
  auto memory = std::make_unique<std::vector<std::uint8_t>>();
  const auto from = parts->fragments[0].payload;
  for (const ChunkRow& row : parts->rows) {
    const auto bytes = from.subspan(static_cast<std::size_t>(row.offset), row.size);
    const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    memory->insert(memory->end(), first, first + bytes.size());
  }
  const std::vector<std::uint8_t>& kept = *memory;
  const nb::capsule owner(memory.get(), [](void* bytes) noexcept { delete static_cast<std::vector<std::uint8_t>*>(bytes); });
  (void)memory.release();
  return view(kept.data(), kept.size(), owner);
}

/// The bytes, and for each chunk its link, status, size and offset.
nb::tuple chunks_of(const PyFragment& self) {
  if (!self.parts->chunk_records) {
    throw nb::value_error(
        "error[data.no_chunks]: only the ROD data of Rodeo's own files can be divided into chunks\n  use fragment.payload: "
        "the unchanged bytes");
  }
  const nb::capsule owner = keeper(self.parts);
  const ChunkRow* const rows = self.parts->rows.data() + self->first_row;
  const std::size_t count = self->rows;
  const auto column = [&]<typename T>(T ChunkRow::* member) {
    static_assert(sizeof(ChunkRow) % sizeof(T) == 0);
    return view(count == 0 ? nullptr : &(rows->*member), count, owner, sizeof(ChunkRow) / sizeof(T));
  };
  return nb::make_tuple(view(reinterpret_cast<const std::uint8_t*>(self->payload.data()), self->payload.size(), owner),
                        column(&ChunkRow::link), column(&ChunkRow::status), column(&ChunkRow::size),
                        column(&ChunkRow::offset));
}

std::uint64_t time_ns(const EventFields& fields) {
  return fields.bc_time_s * std::uint64_t{1'000'000'000} + fields.bc_time_ns;
}

nb::object path_text(const std::string& path) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

template <typename T, typename Class>
void field(Class& bound, const char* name, T EventFields::* member, const char* text) {
  bound.def_prop_ro(name, [member](const PyEvent& self) { return self.parts->fields.*member; }, text);
}

std::vector<std::string> stream_names(const PyEvent& self) {
  std::vector<std::string> names;
  for (const StreamTag& tag : decode_stream_tags(self.parts->stream_tags)) names.push_back(tag.type + "_" + tag.name);
  return names;
}

}  // namespace

void bind_events(nb::module_& module) {
  nb::class_<StreamTag>(module, "StreamTag", "A stream that an event belongs to.")
      .def_ro("name", &StreamTag::name, "the name: `Main`")
      .def_ro("type", &StreamTag::type, "the type: `physics`")
      .def_ro("obeys_lumi_block", &StreamTag::obeys_lumi_block, "whether its files are of one luminosity block each")
      .def_ro("robs", &StreamTag::robs, "source ids of the ROBs that belong to the stream; empty: all")
      .def_prop_ro(
          "dets", [](const StreamTag& self) { return std::vector<std::uint32_t>(self.dets.begin(), self.dets.end()); },
          "subdetectors that belong to the stream; empty: all")
      .def("__repr__", [](const StreamTag& self) { return fmt::format("<StreamTag {}_{}>", self.type, self.name); });

  nb::class_<PyFragment>(module, "Fragment", "A ROB of an event: what one source built.")
      .def_prop_ro(
          "source_id", [](const PyFragment& self) { return self->source_id; }, "the source id of the ROB")
      .def_prop_ro(
          "run_number", [](const PyFragment& self) { return self->run_number; }, "the run, of the ROD header")
      .def_prop_ro(
          "l1_id", [](const PyFragment& self) { return self->l1id; }, "extended L1 id: ECR counter << 24, L1 id")
      .def_prop_ro(
          "bcid", [](const PyFragment& self) { return self->bcid; }, "the bunch crossing")
      .def_prop_ro(
          "trigger_type", [](const PyFragment& self) { return self->trigger_type; }, "the trigger type, of the ROD header")
      .def_prop_ro(
          "detector_event_type", [](const PyFragment& self) { return self->detector_event_type; },
          "the detector event type, of the ROD header")
      .def_prop_ro(
          "status", [](const PyFragment& self) { return self->status; }, "status words of the ROD")
      .def_prop_ro(
          "rob_status", [](const PyFragment& self) { return self->rob_status; }, "first status word of the ROB")
      .def_prop_ro(
          "missing_links", [](const PyFragment& self) { return self->missing; }, "numbers of links without a chunk")
      .def_prop_ro(
          "removed_links", [](const PyFragment& self) { return self->removed; },
          "numbers of links that took no part in the build")
      .def_prop_ro(
          "missing_link_ids", [](const PyFragment& self) { return self->missing_ids; }, "ids of the first missing links")
      .def_prop_ro(
          "n_chunks", [](const PyFragment& self) { return self->rows; }, "number of chunks")
      .def_prop_ro(
          "payload",
          [](const PyFragment& self) {
            return self.parts->scattered ? gathered(self.parts) : bytes_view(self->payload, self.parts);
          },
          "the ROD data as bytes")
      .def("_chunks", &chunks_of)
      .def("__repr__", [](const PyFragment& self) {
        return fmt::format("<Fragment {}: {} chunks, {}>", to_text(SourceId{self->source_id}), self->rows,
                           joined_or_ok(status_names(self->status.empty() ? 0 : self->status[0], FragmentKind::rod)));
      });

  nb::class_<PyEvent> event(module, "Event", "An event of a data file or of a running readout.");
  field(event, "global_id", &EventFields::global_id, "the global id, which never repeats within a run");
  field(event, "bcid", &EventFields::bcid, "the bunch crossing");
  field(event, "run_type", &EventFields::run_type, "the type of the run");
  field(event, "run_number", &EventFields::run_number, "the run");
  field(event, "lumi_block", &EventFields::lumi_block, "the luminosity block");
  field(event, "trigger_type", &EventFields::trigger_type, "the trigger type");
  event
      .def_prop_ro(
          "l1_id", [](const PyEvent& self) { return self.parts->fields.l1id.value; },
          "extended L1 id: ECR counter << 24, L1 id")
      .def_prop_ro(
          "source_id", [](const PyEvent& self) { return self.parts->fields.source_id.value; },
          "the source id of the event header")
      .def_prop_ro(
          "time_ns", [](const PyEvent& self) { return time_ns(self.parts->fields); },
          "time of the event, in nanoseconds since 1970")
      .def_prop_ro(
          "status", [](const PyEvent& self) { return self.parts->status; }, "status words")
      .def_prop_ro(
          "stream_tags", [](const PyEvent& self) { return decode_stream_tags(self.parts->stream_tags); },
          "the streams, as StreamTag")
      .def_prop_ro("streams", &stream_names, "names of the streams: `physics_Main`")
      .def_prop_ro(
          "index", [](const PyEvent& self) { return self.parts->index; }, "number of the event in its file")
      .def_prop_ro(
          "offset", [](const PyEvent& self) { return self.parts->offset; }, "offset of its data block in the file")
      .def_prop_ro(
          "file", [](const PyEvent& self) { return path_text(self.parts->path); }, "path of the file")
      .def_prop_ro(
          "raw",
          [](const PyEvent& self) {
            return self.parts->scattered ? gathered(self.parts) : bytes_view(self.parts->raw, self.parts);
          },
          "its bytes, with header and checksum")
      .def_prop_ro(
          "fragments",
          [](const PyEvent& self) {
            nb::list fragments;
            for (std::size_t i = 0; i < self.parts->fragments.size(); ++i) fragments.append(PyFragment{self.parts, i});
            return fragments;
          },
          "a list of its ROBs, as Fragment")
      .def("__repr__", [](const PyEvent& self) {
        const EventFields& fields = self.parts->fields;
        return fmt::format("<Event L1 id {:#010x}, BCID {}, run {}, {} fragments, {} chunks>", fields.l1id.value,
                           fields.bcid, fields.run_number, self.parts->fragments.size(), self.parts->rows.size());
      });
}

}  // namespace rodeo::python::data
