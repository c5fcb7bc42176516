#include "chat/schema_work.h"

#include <json-schema.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace outrider {
namespace {

constexpr uint64_t kVisit = 20;    // to make a rule, apart from its name
constexpr uint64_t kNameByte = 2;  // the name goes through a regular expression
constexpr uint64_t kValue = 10;    // of an enum

template <typename T>
const T& As(const common_chat_schema& node) {
  return static_cast<const T&>(node);
}

class Counter {
 public:
  uint64_t Count(const common_chat_schema& root) {
    Visit(root, 0);
    return std::min(work_, kMaxSchemaWork + 1);
  }

 private:
  bool over() const { return work_ > kMaxSchemaWork; }

  // `name_bytes`: of the rule's name, which contains the path to the node.
  void Visit(const common_chat_schema& node, size_t name_bytes) {
    constexpr size_t kPart = 10;  // added to names, such as "-additional"
    work_ += kVisit + kNameByte * name_bytes;
    if (over()) return;
    switch (node.kind()) {
      case common_chat_schema::KIND_REF: {
        const auto& ref = As<common_chat_schema_ref>(node);
        if (ref.target != nullptr && resolved_.insert(ref.target).second) Visit(*ref.target, ref.ref.size());
        break;
      }
      case common_chat_schema::KIND_ANY_OF:
        for (const auto& child : As<common_chat_schema_any_of>(node).children) Visit(*child, name_bytes + kPart);
        break;
      case common_chat_schema::KIND_ALL_OF:
        VisitAllOf(As<common_chat_schema_all_of>(node), name_bytes);
        break;
      case common_chat_schema::KIND_ENUM:
        work_ += kValue * As<common_chat_schema_enum>(node).values.size();
        break;
      case common_chat_schema::KIND_OBJECT:
        VisitObject(As<common_chat_schema_object>(node), name_bytes);
        break;
      case common_chat_schema::KIND_TUPLE:
        for (const auto& item : As<common_chat_schema_tuple>(node).items) Visit(*item, name_bytes + kPart);
        break;
      case common_chat_schema::KIND_ARRAY:
        Visit(*As<common_chat_schema_array>(node).items, name_bytes + kPart);
        break;
      default:  // has no parts
        break;
    }
  }

  void VisitObject(const common_chat_schema_object& object, size_t name_bytes) {
    uint64_t optional = object.additional_properties ? 1 : 0;
    for (const common_chat_schema_property& property : object.properties) {
      VisitProperty(property, name_bytes);
      optional += property.required ? 0 : 1;
      if (over()) return;
    }
    if (object.additional_properties) Visit(*object.additional_properties, name_bytes);
    AddOptional(optional);
  }

  void VisitAllOf(const common_chat_schema_all_of& all, size_t name_bytes) {
    uint64_t optional = 0;
    for (const auto& child : all.children) {
      if (child->kind() != common_chat_schema::KIND_ANY_OF) {
        VisitPart(*child, name_bytes, nullptr);
        continue;
      }
      for (const auto& part : As<common_chat_schema_any_of>(*child).children) VisitPart(*part, name_bytes, &optional);
    }
    AddOptional(optional);
  }

  // A part of an "allOf" gives its properties to the whole. Those of an "anyOf" in it become optional.
  void VisitPart(const common_chat_schema& part, size_t name_bytes, uint64_t* optional) {
    const common_chat_schema* node = &part;
    for (work_ += kVisit; !over() && node != nullptr && node->kind() == common_chat_schema::KIND_REF; work_ += kVisit) {
      node = As<common_chat_schema_ref>(*node).target;
    }
    if (over() || node == nullptr || node->kind() != common_chat_schema::KIND_OBJECT) return;
    for (const common_chat_schema_property& property : As<common_chat_schema_object>(*node).properties) {
      VisitProperty(property, name_bytes);
      if (optional != nullptr) ++*optional;
      if (over()) return;
    }
  }

  void VisitProperty(const common_chat_schema_property& property, size_t name_bytes) {
    const size_t bytes = name_bytes + property.name.size() + 1;
    work_ += kVisit + kNameByte * bytes;  // of the rule for name and value
    Visit(*property.schema, bytes);
  }

  // For each of the properties a list of those after it, for each of which a list of those after it …
  void AddOptional(uint64_t count) {
    constexpr uint64_t kMaxCounted = 1000;  // more than fit; the cube does not overflow
    count = std::min(count, kMaxCounted);
    work_ += count * count * count / 6;
  }

  uint64_t work_ = 0;
  std::set<const common_chat_schema*> resolved_;  // targets of references, which get a rule once
};

}  // namespace

uint64_t SchemaWork(const common_chat_schema_document& document) {
  return Counter().Count(*document.root);
}

}  // namespace outrider
