#include "tests/testing/mutate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::testing {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Limit on the size of repeated fields.
constexpr int kMaxElements = 64;

// Collects all messages in `message`, starting with itself.
void CollectMessages(Message* message, std::vector<Message*>* all) {
  all->push_back(message);
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      CollectMessages(reflection.MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      CollectMessages(reflection.MutableRepeatedMessage(message, field, i), all);
    }
  }
}

// Sets a scalar field. Appends to a repeated field, or sets its element `i` if i >= 0.
void SetScalar(MutationRandom* random, Message* message, const FieldDescriptor* field, int i) {
  const Reflection& r = *message->GetReflection();
  const bool add = field->is_repeated() && i < 0;
  const auto put = [&](auto set, auto set_repeated, auto add_to, auto value) {
    if (add) {
      (r.*add_to)(message, field, value);
    } else if (field->is_repeated()) {
      (r.*set_repeated)(message, field, i, value);
    } else {
      (r.*set)(message, field, value);
    }
  };
  const int64_t integer = random->BoundaryInteger();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&Reflection::SetInt32, &Reflection::SetRepeatedInt32, &Reflection::AddInt32,
                 static_cast<int32_t>(integer));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&Reflection::SetInt64, &Reflection::SetRepeatedInt64, &Reflection::AddInt64,
                 integer);
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(&Reflection::SetUInt32, &Reflection::SetRepeatedUInt32, &Reflection::AddUInt32,
                 static_cast<uint32_t>(integer));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64, &Reflection::AddUInt64,
                 static_cast<uint64_t>(integer));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(&Reflection::SetDouble, &Reflection::SetRepeatedDouble, &Reflection::AddDouble,
                 random->OddNumber());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&Reflection::SetFloat, &Reflection::SetRepeatedFloat, &Reflection::AddFloat,
                 static_cast<float>(random->OddNumber()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&Reflection::SetBool, &Reflection::SetRepeatedBool, &Reflection::AddBool,
                 random->OneIn(2));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumDescriptor* const type = field->enum_type();
      const int value =
          random->OneIn(8)
              ? static_cast<int>(integer)
              : type->value(static_cast<int>(random->Below(type->value_count())))->number();
      return put(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue,
                 &Reflection::AddEnumValue, value);
    }
    default: {
      std::string text;
      if (!add) {
        text = field->is_repeated() ? r.GetRepeatedString(*message, field, i)
                                    : r.GetString(*message, field);
      }
      if (random->OneIn(4)) {
        text = std::string(random->Below(20), static_cast<char>(random->Next()));
      } else {
        MutateBytes(random, &text);
      }
      if (add) {
        r.AddString(message, field, std::move(text));
      } else if (field->is_repeated()) {
        r.SetRepeatedString(message, field, i, std::move(text));
      } else {
        r.SetString(message, field, std::move(text));
      }
    }
  }
}

template <typename Messages>
auto* RandomElement(MutationRandom* random, Messages* messages) {
  return messages->Mutable(static_cast<int>(random->Below(messages->size())));
}

// Returns a random attribute of the node that satisfies `is_wanted`, or null.
template <typename Wanted>
AttrValue* RandomAttr(MutationRandom* random, NodeDef* node, Wanted is_wanted) {
  std::vector<AttrValue*> attrs;
  // Sorts the names, so that the choice does not depend on the order of maps.
  std::vector<std::string> names;
  for (const auto& [name, value] : node->attr()) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    AttrValue& value = (*node->mutable_attr())[name];
    if (is_wanted(value)) attrs.push_back(&value);
  }
  return attrs.empty() ? nullptr : attrs[random->Below(static_cast<int64_t>(attrs.size()))];
}

DataType RandomType(MutationRandom* random) {
  if (random->OneIn(10)) return static_cast<DataType>(random->Below(140));
  static constexpr DataType kTypes[] = {DT_FLOAT, DT_DOUBLE, DT_INT32,  DT_INT64, DT_BOOL,
                                        DT_HALF,  DT_UINT8,  DT_STRING, DT_INT8,  DT_BFLOAT16};
  return kTypes[random->Below(std::size(kTypes))];
}

void MutateShape(MutationRandom* random, TensorShapeProto* shape) {
  const int64_t choice = random->Below(4);
  if (choice == 0 || shape->dim_size() == 0) {
    shape->add_dim()->set_size(random->OneIn(2) ? random->Below(5) : random->BoundaryInteger());
  } else if (choice == 1) {
    shape->mutable_dim()->RemoveLast();
  } else if (choice == 2) {
    shape->mutable_dim(static_cast<int>(random->Below(shape->dim_size())))
        ->set_size(random->OneIn(2) ? random->Below(5) : random->BoundaryInteger());
  } else {
    shape->mutable_dim()->SwapElements(0, shape->dim_size() - 1);
  }
}

void MutateTensor(MutationRandom* random, TensorProto* tensor) {
  switch (random->Below(4)) {
    case 0:
      return tensor->set_dtype(RandomType(random));
    case 1:
      return MutateShape(random, tensor->mutable_tensor_shape());
    case 2:
      // Sets one integer of the content to a boundary value.
      if (tensor->tensor_content().size() >= 4) {
        const size_t size = tensor->dtype() == DT_INT64 || tensor->dtype() == DT_DOUBLE ? 8 : 4;
        const size_t count = tensor->tensor_content().size() / size;
        if (count == 0) return;
        const int64_t value = random->BoundaryInteger();
        tensor->mutable_tensor_content()->replace(random->Below(static_cast<int64_t>(count)) * size,
                                                  size, reinterpret_cast<const char*>(&value),
                                                  size);
        return;
      }
      if (tensor->int_val_size() > 0) {
        return tensor->set_int_val(0, static_cast<int32_t>(random->BoundaryInteger()));
      }
      if (tensor->int64_val_size() > 0) return tensor->set_int64_val(0, random->BoundaryInteger());
      return;
    default:
      return MutateMessage(random, tensor);
  }
}

std::string RandomOp(MutationRandom* random) {
  static const auto* const ops = new auto(GlobalRegistry().Ops());
  return (*ops)[random->Below(static_cast<int64_t>(ops->size()))]->def().name();
}

}  // namespace

uint64_t MutationRandom::Next() {
  // SplitMix64.
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int64_t MutationRandom::BoundaryInteger() {
  switch (Below(4)) {
    case 0:
      return Below(11) - 5;
    case 1:
      return static_cast<int64_t>((uint64_t{1} << Below(64)) - 2 + Below(4));
    case 2:
      return -static_cast<int64_t>((uint64_t{1} << Below(63)) - 2 + Below(4));
    default:
      return static_cast<int64_t>(Next() >> Below(64));
  }
}

double MutationRandom::OddNumber() {
  static constexpr double kNumbers[] = {0,
                                        -0.0,
                                        1,
                                        -1,
                                        0.5,
                                        1e-45,
                                        1e38,
                                        -1e38,
                                        1e-300,
                                        1e300,
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN()};
  if (OneIn(4)) return static_cast<double>(BoundaryInteger());
  return kNumbers[Below(std::size(kNumbers))];
}

void MutateMessage(MutationRandom* random, Message* message) {
  std::vector<Message*> all;
  CollectMessages(message, &all);
  Message* const target = all[random->Below(static_cast<int64_t>(all.size()))];
  const auto* const descriptor = target->GetDescriptor();
  if (descriptor->field_count() == 0) return;
  const Reflection& r = *target->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(*target, &fields);
  // Prefers fields that are set.
  const FieldDescriptor* field =
      fields.empty() || random->OneIn(4)
          ? descriptor->field(static_cast<int>(random->Below(descriptor->field_count())))
          : fields[random->Below(static_cast<int64_t>(fields.size()))];
  if (!field->is_repeated()) {
    if (random->OneIn(5)) {
      r.ClearField(target, field);
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      SetScalar(random, target, field, -1);
    } else {
      // Copies another message of this type, if there is one. Serializes the other message first,
      // because setting this field may clear another field of the same oneof.
      std::string bytes;
      for (const Message* other : all) {
        if (other->GetDescriptor() == field->message_type() && random->OneIn(3)) {
          bytes = other->SerializePartialAsString();
        }
      }
      r.MutableMessage(target, field)->ParsePartialFromString(bytes);
    }
    return;
  }
  const int size = r.FieldSize(*target, field);
  const int64_t choice = random->Below(5);
  if (size == 0 || (choice == 0 && size < kMaxElements)) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Message* const added = r.AddMessage(target, field);
      if (size > 0) {
        const std::string bytes =
            r.GetRepeatedMessage(*target, field, static_cast<int>(random->Below(size)))
                .SerializePartialAsString();
        added->ParsePartialFromString(bytes);
      }
    } else {
      SetScalar(random, target, field, -1);
    }
  } else if (choice == 1) {
    r.SwapElements(target, field, static_cast<int>(random->Below(size)), size - 1);
    r.RemoveLast(target, field);
  } else if (choice == 2) {
    r.SwapElements(target, field, static_cast<int>(random->Below(size)),
                   static_cast<int>(random->Below(size)));
  } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    SetScalar(random, target, field, static_cast<int>(random->Below(size)));
  } else {
    MutateMessage(random,
                  r.MutableRepeatedMessage(target, field, static_cast<int>(random->Below(size))));
  }
}

void MutateGraph(MutationRandom* random, GraphDef* graph) {
  if (graph->node_size() == 0) return MutateMessage(random, graph);
  NodeDef* const node = RandomElement(random, graph->mutable_node());
  NodeDef* const other = RandomElement(random, graph->mutable_node());
  const auto input_of = [&](NodeDef* n) -> std::string* {
    return n->input_size() == 0 ? nullptr : RandomElement(random, n->mutable_input());
  };
  switch (random->Below(12)) {
    case 0:
      if (std::string* a = input_of(node), *b = input_of(other); a != nullptr && b != nullptr) {
        a->swap(*b);
      }
      return;
    case 1:
      if (std::string* input = input_of(node)) {
        *input =
            random->OneIn(3) ? absl::StrCat(other->name(), ":", random->Below(4)) : other->name();
      }
      return;
    case 2:
      node->add_input(random->OneIn(2) ? "^" + other->name() : other->name());
      return;
    case 3:
      if (node->input_size() > 0) node->mutable_input()->RemoveLast();
      return;
    case 4:
      if (AttrValue* attr = RandomAttr(
              random, node, [](auto& a) { return a.value_case() == AttrValue::kType; })) {
        attr->set_type(RandomType(random));
      }
      return;
    case 5:
      if (AttrValue* attr = RandomAttr(random, node, [](auto& a) { return a.has_shape(); })) {
        MutateShape(random, attr->mutable_shape());
      }
      return;
    case 6:
    case 7:
      if (AttrValue* attr = RandomAttr(random, node, [](auto& a) { return a.has_tensor(); })) {
        MutateTensor(random, attr->mutable_tensor());
      }
      return;
    case 8:
      if (AttrValue* attr = RandomAttr(random, node, [](auto&) { return true; })) {
        if (random->OneIn(3)) {
          attr->Clear();
        } else {
          MutateMessage(random, attr);
        }
      }
      return;
    case 9:
      if (!node->attr().empty() && random->OneIn(2)) {
        node->mutable_attr()->erase(
            std::min_element(node->attr().begin(), node->attr().end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; })
                ->first);
      } else {
        node->set_op(RandomOp(random));
      }
      return;
    case 10:
      // Copies whole attributes, such as "T", from one node to another, so that graphs stay
      // consistent.
      for (const auto& [name, value] : other->attr()) {
        if (node->attr().contains(name)) (*node->mutable_attr())[name] = value;
      }
      return;
    default:
      MutateMessage(random, graph);
  }
}

void MutateWords(MutationRandom* random, absl::string_view vocabulary, std::string* text) {
  // Tokens are runs of letters and digits, and single other characters, including white space.
  std::vector<std::string> words;
  bool in_word = false;
  for (const char c : *text) {
    const bool is_word = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (!is_word || !in_word) words.emplace_back();
    words.back().push_back(c);
    in_word = is_word;
  }
  if (words.empty()) words.emplace_back();
  const auto any = [&] { return random->Below(static_cast<int64_t>(words.size())); };
  const auto some_word = [&]() -> std::string {
    if (random->OneIn(4)) return absl::StrCat(random->BoundaryInteger());
    if (random->OneIn(2)) return words[any()];
    const std::vector<absl::string_view> known = absl::StrSplit(vocabulary, ' ');
    return std::string(known[random->Below(static_cast<int64_t>(known.size()))]);
  };
  const int64_t at = any();
  switch (random->Below(6)) {
    case 0:
      words.erase(words.begin() + at);
      break;
    case 1:
      words[at].swap(words[any()]);
      break;
    case 2:
      words[at] = some_word();
      break;
    case 3: {
      // Repeats a range of words.
      const int64_t from = any();
      const int64_t count =
          std::min<int64_t>(1 + random->Below(20), static_cast<int64_t>(words.size()) - from);
      const std::vector<std::string> stretch(words.begin() + from, words.begin() + from + count);
      words.insert(words.begin() + at, stretch.begin(), stretch.end());
      break;
    }
    case 4: {
      const int64_t count =
          std::min<int64_t>(1 + random->Below(20), static_cast<int64_t>(words.size()) - at);
      words.erase(words.begin() + at, words.begin() + at + count);
      break;
    }
    default:
      words.insert(words.begin() + at, some_word());
  }
  *text = absl::StrJoin(words, "");
}

void MutateBytes(MutationRandom* random, std::string* bytes) {
  if (bytes->empty()) {
    bytes->push_back(static_cast<char>(random->Next()));
    return;
  }
  const auto size = static_cast<int64_t>(bytes->size());
  const int64_t at = random->Below(size);
  switch (random->Below(5)) {
    case 0:
      bytes->resize(at);
      return;
    case 1:
      (*bytes)[at] = static_cast<char>(random->Next());
      return;
    case 2:
      bytes->insert(at, 1, static_cast<char>(random->Next()));
      return;
    case 3:
      bytes->insert(at, bytes->substr(random->Below(size), random->Below(16)));
      return;
    default:
      (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << random->Below(8)));
  }
}

}  // namespace gradflow::testing
