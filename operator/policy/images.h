#pragma once

#include "operator/policy/pass.h"

namespace outrigger::controller {

/// Decides the images of a run: a later change of the operator's own changes no running job.
void choose_images(Pass& pass);

/// Replaces a tag by the digest that a node resolved it to, so that every replacement runs the same
/// code, even if somebody pushes to the tag. Where the node names another repository or no digest
/// (an image that was loaded by hand), the tag stays.
void pin_images(Pass& pass);

/// The image for a new pod.
std::string image_for(const Pass& pass, api::Role role);

}  // namespace outrigger::controller
