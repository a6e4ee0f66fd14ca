#include "frontend/http/body_fields.h"

namespace weir {

std::string_view* TextOf(RequestBody& body, BodyField field) noexcept {
  Request& request = body.request;
  switch (field) {
    case BodyField::kIp:
      return &request.ip;
    case BodyField::kUser:
      return &request.user;
    case BodyField::kApiKey:
      return &request.api_key;
    case BodyField::kOrg:
      return &request.org;
    case BodyField::kTier:
      return &request.tier;
    case BodyField::kMethod:
      return &request.method;
    case BodyField::kPath:
      return &request.path;
    case BodyField::kHost:
      return &request.host;
    case BodyField::kDomain:
      return &request.domain;
    case BodyField::kKey:
      return &body.key;
    case BodyField::kLimit:
      return &body.limit;
    case BodyField::kAlgorithm:
      return &body.algorithm;
    default:
      return nullptr;
  }
}

std::vector<NamedValue>* PairsOf(RequestBody& body, BodyField field) noexcept {
  switch (field) {
    case BodyField::kHeaders:
      return &body.headers;
    case BodyField::kCookies:
      return &body.cookies;
    case BodyField::kQuery:
      return &body.query;
    case BodyField::kDescriptors:
      return &body.descriptors;
    default:
      return nullptr;
  }
}

}  // namespace weir
