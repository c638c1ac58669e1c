#include "gradflow/graph/import_checks.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::internal {

// ---- Missing ops and kernels ----

void MissingOps::AddOp(const NodeDef& node) { Add(node.op(), node, absl::OkStatus()); }

void MissingOps::AddKernel(const NodeDef& node, const absl::Status& status) {
  Add(status.ToString(), node, status);
}

void MissingOps::Add(const std::string& key, const NodeDef& node,
                     const absl::Status& kernel_status) {
  const auto [it, is_new] = index_.try_emplace(key, static_cast<int>(kinds_.size()));
  if (is_new) kinds_.push_back({&node, kernel_status, 0});
  ++kinds_[it->second].num_nodes;
}

absl::Status MissingOps::status() const {
  // Limits the text, because a file may name any number of unknown ops.
  constexpr size_t kMaxLines = 50;
  std::vector<std::string> lines;
  bool op_is_missing = false;
  for (const Kind& kind : kinds_) {
    op_is_missing |= kind.kernel_status.ok();
    if (lines.size() >= kMaxLines) continue;
    std::string line = NodePrefix(*kind.first_node);
    if (kind.num_nodes > 1) {
      line = absl::StrCat(line.substr(0, line.size() - 2), " and ", kind.num_nodes - 1, " more: ");
    }
    const absl::Status why = kind.kernel_status.ok()
                                 ? registry_.LookUpOp(kind.first_node->op()).status()
                                 : kind.kernel_status;
    lines.push_back(absl::StrCat(line, why.message()));
  }
  if (kinds_.size() > lines.size()) {
    lines.push_back(absl::StrCat("and ", kinds_.size() - lines.size(), " more kinds of nodes"));
  }
  if (kinds_.empty()) return absl::OkStatus();
  return absl::Status(op_is_missing ? absl::StatusCode::kNotFound : kinds_[0].kernel_status.code(),
                      absl::StrJoin(lines, "\n"));
}

// ---- Order and cycles ----

namespace {

// Returns a cycle among the nodes that still wait for a source, as "'a' -> 'b' -> 'a'".
std::string DescribeCycle(const std::vector<Node*>& nodes, int first_id,
                          const std::vector<int>& waiting) {
  const auto waits = [&](const Node* node) {
    return node->id() >= first_id && waiting[node->id() - first_id] > 0;
  };
  // Every waiting node has a waiting source, so a walk from source to source reaches a cycle.
  const Node* node = *std::find_if(nodes.begin(), nodes.end(), waits);
  std::vector<const Node*> path;
  std::vector<bool> on_path(nodes.size());
  while (!on_path[node->id() - first_id]) {
    on_path[node->id() - first_id] = true;
    path.push_back(node);
    const Node& consumer = *node;
    const auto sources = consumer.sources();
    node = std::find_if(sources.begin(), sources.end(), [&](const Node::Source& source) {
             return waits(source.node) && !IsBackEdge(consumer, source);
           })->node;
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), node));
  path.push_back(node);
  std::reverse(path.begin(), path.end());

  constexpr size_t kMaxNames = 10;
  std::vector<std::string> names;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path.size() > kMaxNames && i == kMaxNames - 1) {
      names.push_back(absl::StrCat("(", path.size() - kMaxNames, " more)"));
      i = path.size() - 1;
    }
    names.push_back(Quoted(path[i]->name()));
  }
  return absl::StrJoin(names, " -> ");
}

}  // namespace

absl::Status SortTopologically(const std::vector<Node*>& nodes, int first_id,
                               std::vector<Node*>* order) {
  // The consumers of node i are consumers[begin[i] .. begin[i + 1]), one element per edge.
  const int count = static_cast<int>(nodes.size());
  std::vector<int> waiting(count);
  std::vector<int> begin(count + 1);
  const auto for_each_edge = [&](auto&& fn) {
    for (int i = 0; i < count; ++i) {
      for (const Node::Source& source : nodes[i]->sources()) {
        if (source.node->id() < first_id || IsBackEdge(*nodes[i], source)) continue;
        fn(source.node->id() - first_id, i);
      }
    }
  };
  for_each_edge([&](int from, int to) {
    ++begin[from + 1];
    ++waiting[to];
  });
  for (int i = 0; i < count; ++i) begin[i + 1] += begin[i];
  std::vector<int> consumers(begin[count]);
  std::vector<int> next(begin.begin(), begin.end() - 1);
  for_each_edge([&](int from, int to) { consumers[next[from]++] = to; });

  order->clear();
  order->reserve(count);
  for (int i = 0; i < count; ++i) {
    if (waiting[i] == 0) order->push_back(nodes[i]);
  }
  // *order is also the queue.
  for (size_t done = 0; done < order->size(); ++done) {
    const int i = (*order)[done]->id() - first_id;
    for (int c = begin[i]; c < begin[i + 1]; ++c) {
      if (--waiting[consumers[c]] == 0) order->push_back(nodes[consumers[c]]);
    }
  }
  if (order->size() == nodes.size()) return absl::OkStatus();
  return errors::InvalidArgument("the graph has a cycle: ",
                                 DescribeCycle(nodes, first_id, waiting));
}

// ---- Versions ----

absl::Status CheckVersions(const VersionDef& versions) {
  if (versions.producer() < 0) {
    return errors::InvalidArgument("the graph's producer has version ", versions.producer(),
                                   ", expected 0 or more");
  }
  if (versions.min_consumer() > kGraphDefVersion) {
    return errors::InvalidArgument("the graph needs a reader of version ", versions.min_consumer(),
                                   ", but gradflow reads up to version ", kGraphDefVersion);
  }
  const auto& bad = versions.bad_consumers();
  if (std::find(bad.begin(), bad.end(), kGraphDefVersion) != bad.end()) {
    return errors::InvalidArgument("the graph excludes readers of version ", kGraphDefVersion,
                                   ", the version of gradflow");
  }
  return absl::OkStatus();
}

void MergeVersions(const VersionDef& from, VersionDef* to) {
  to->set_producer(std::min(to->producer(), from.producer()));
  to->set_min_consumer(std::max(to->min_consumer(), from.min_consumer()));
  if (from.bad_consumers().empty()) return;
  // A set, because a file may have any number of bad consumers.
  HashSet<int> known(to->bad_consumers().begin(), to->bad_consumers().end());
  for (const int bad : from.bad_consumers()) {
    if (known.insert(bad).second) to->add_bad_consumers(bad);
  }
}

// ---- Functions ----

namespace {

// The name that identifies a member of a list of gradients.
const std::string& Key(const GradientDef& gradient) { return gradient.function_name(); }
const std::string& Key(const RegisteredGradient& gradient) { return gradient.registered_op_type(); }

template <typename Messages>
HashMap<absl::string_view, const typename Messages::value_type*> ByKey(const Messages& messages) {
  HashMap<absl::string_view, const typename Messages::value_type*> by_key;
  for (const auto& message : messages) by_key.emplace(Key(message), &message);
  return by_key;
}

template <typename Messages>
absl::Status CheckSame(const Messages& from, const Messages& to, absl::string_view what) {
  if (from.empty()) return absl::OkStatus();
  const auto known = ByKey(to);
  for (const auto& message : from) {
    const auto it = known.find(Key(message));
    if (it != known.end() &&
        !google::protobuf::util::MessageDifferencer::Equals(message, *it->second)) {
      return errors::InvalidArgument("the graph already has another ", what, " ",
                                     Quoted(Key(message)));
    }
  }
  return absl::OkStatus();
}

template <typename Messages>
void AddNew(const Messages& from, Messages* to) {
  // The pointers of `known` are not dereferenced below, where `to` grows.
  const auto known = ByKey(*to);
  for (const auto& message : from) {
    if (known.count(Key(message)) == 0) *to->Add() = message;
  }
}

}  // namespace

absl::Status CheckGradients(const FunctionDefLibrary& from, const FunctionDefLibrary& to) {
  GRADFLOW_RETURN_IF_ERROR(CheckSame(from.gradient(), to.gradient(), "gradient of function"));
  return CheckSame(from.registered_gradients(), to.registered_gradients(), "gradient of op");
}

void MergeGradients(const FunctionDefLibrary& from, FunctionDefLibrary* to) {
  AddNew(from.gradient(), to->mutable_gradient());
  AddNew(from.registered_gradients(), to->mutable_registered_gradients());
}

absl::Status CheckSameFunction(const FunctionDef& function, const FunctionDef& known) {
  if (google::protobuf::util::MessageDifferencer::Equals(function, known)) return absl::OkStatus();
  return errors::InvalidArgument("the graph already has another function ",
                                 Quoted(known.signature().name()));
}

absl::Status CheckRecursion(const FunctionDefLibrary& library, const FunctionLibrary& functions,
                            const Registry& registry,
                            absl::FunctionRef<bool(absl::string_view)> is_closed,
                            std::vector<absl::string_view>* closed) {
  enum State : uint8_t { kNew, kOnPath, kDone, kClosed };
  HashMap<const FunctionDef*, State> state;
  // The functions on the path, each with its next node to visit, and whether the functions that it
  // has called so far are closed.
  struct Step {
    const FunctionDef* function;
    int next = 0;
    bool closed = true;
  };
  std::vector<Step> path;
  for (const FunctionDef& root : library.function()) {
    // Skips a function that the graph already had.
    const FunctionDef* const first = functions.Find(root.signature().name());
    if (first != &root || state[first] != kNew) continue;
    path.push_back({first});
    state[first] = kOnPath;
    while (!path.empty()) {
      Step& step = path.back();
      const auto& nodes = step.function->node_def();
      const FunctionDef* called = nullptr;
      State found = kNew;
      while (step.next < nodes.size() && called == nullptr) {
        const std::string& op = nodes[step.next++].op();
        called = functions.Find(op);
        if (called == nullptr) {
          step.closed &= registry.FindOp(op) != nullptr;
          continue;
        }
        found = state[called];
        // Also skips a function that was closed before the import.
        if (found == kNew && is_closed(op)) found = state[called] = kClosed;
        step.closed &= found != kDone;
        if (found == kDone || found == kClosed) called = nullptr;
      }
      if (called == nullptr) {
        state[step.function] = step.closed ? kClosed : kDone;
        if (step.closed) closed->push_back(step.function->signature().name());
        const bool was_closed = step.closed;
        path.pop_back();
        if (!path.empty()) path.back().closed &= was_closed;
      } else if (found == kNew) {
        state[called] = kOnPath;
        path.push_back({called});
      } else {
        const auto begin = std::find_if(path.begin(), path.end(), [called](const Step& other) {
          return other.function == called;
        });
        constexpr size_t kMaxNames = 10;
        std::string text;
        size_t names = 0;
        for (auto it = begin; it != path.end() && names < kMaxNames; ++it, ++names) {
          absl::StrAppend(&text, Quoted(it->function->signature().name()), " -> ");
        }
        if (path.end() - begin > static_cast<int64_t>(kMaxNames)) absl::StrAppend(&text, "... -> ");
        return errors::InvalidArgument("a function of the graph calls itself: ", text,
                                       Quoted(called->signature().name()));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
