// Package extmcppb is the protocol by which agentgateway requests policy decisions about MCP messages,
// generated from the .proto file in this folder.
package extmcppb
