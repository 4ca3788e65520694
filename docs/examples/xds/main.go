// Command xds is a management server that offers what a file says: a JSON list of RateLimitConfig.
// It is an example, not a part of the service. It looks at the file every second and prints what
// becomes of each set.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log"
	"net"
	"os"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
)

const node = "default" // CONFIG_GRPC_XDS_NODE_ID of the service

func main() {
	ctx := context.Background()
	snapshots := cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	go follow(ctx, os.Args[1], snapshots)

	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "localhost:18000")
	if err != nil {
		log.Fatal(err)
	}
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g,
		server.NewServer(ctx, snapshots, server.CallbackFuncs{StreamRequestFunc: tell}))
	log.Fatal(g.Serve(listener))
}

// tell prints what the service answers.
func tell(_ int64, r *discovery.DiscoveryRequest) error {
	switch {
	case r.ErrorDetail != nil:
		log.Printf("refused, %q stays in force:\n%s", r.VersionInfo, r.ErrorDetail.Message)
	case r.ResponseNonce != "":
		log.Printf("in force: %s", r.VersionInfo)
	default:
		log.Printf("a stream begins, in force is %q", r.VersionInfo)
	}
	return nil
}

// follow offers each change of the file as a set of its own.
func follow(ctx context.Context, path string, snapshots cache.SnapshotCache) {
	offered := ""
	for ; ; time.Sleep(time.Second) {
		content, err := os.ReadFile(path)
		version := fmt.Sprintf("%08x", crc32.ChecksumIEEE(content))
		if err != nil || version == offered {
			continue
		}
		offered = version
		set, err := parse(content)
		if err != nil {
			log.Print(err)
			continue
		}
		snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{
			resource.RateLimitConfigType: set,
		})
		if err == nil {
			err = snapshots.SetSnapshot(ctx, node, snapshot)
		}
		if err != nil {
			log.Print(err)
		}
	}
}

func parse(content []byte) ([]types.Resource, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, err
	}
	set := make([]types.Resource, len(list))
	for i, one := range list {
		c := &config.RateLimitConfig{}
		if err := protojson.Unmarshal(one, c); err != nil {
			return nil, fmt.Errorf("resource %d: %w", i+1, err)
		}
		set[i] = c
	}
	return set, nil
}
