#include "api/enums.h"

namespace outrigger::api {

std::string_view to_string(DataFormat value) { return enum_name(value); }
std::string_view to_string(Sampling value) { return enum_name(value); }
std::string_view to_string(Precision value) { return enum_name(value); }
std::string_view to_string(AllReducePrecision value) { return enum_name(value); }
std::string_view to_string(Recompute value) { return enum_name(value); }
std::string_view to_string(EvaluationMetric value) { return enum_name(value); }
std::string_view to_string(EvaluationPlace value) { return enum_name(value); }
std::string_view to_string(WireFormat value) { return enum_name(value); }
std::string_view to_string(Engine value) { return enum_name(value); }
std::string_view to_string(LinkKind value) { return enum_name(value); }
std::string_view to_string(Encryption value) { return enum_name(value); }
std::string_view to_string(Role value) { return enum_name(value); }
std::string_view to_string(FailureAction value) { return enum_name(value); }
std::string_view to_string(Gang value) { return enum_name(value); }
std::string_view to_string(CleanPodPolicy value) { return enum_name(value); }
std::string_view to_string(ConditionStatus value) { return enum_name(value); }
std::string_view to_string(StallCause value) { return enum_name(value); }

}  // namespace outrigger::api
