// Package pluginv1 is the protocol between the service and its plugins, version
// 1, as generated from the .proto files beside it. Plugin authors use the SDK,
// not this.
package pluginv1
