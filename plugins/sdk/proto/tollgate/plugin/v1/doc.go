// Package pluginv1 is version 1 of the protocol between the service and its plugins, generated from
// the .proto files in this folder. Plugin authors use package sdk instead.
package pluginv1
