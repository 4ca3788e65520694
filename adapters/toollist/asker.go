package toollist

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/remotetools"
)

// Config contains the settings of questions to remotes (contract W-2).
type Config struct {
	Networks []netip.Prefix `env:"TOOLS_NETWORKS" desc:"networks in which remotes may be that are asked for their tools, although they are not public"`
}

// Validate returns an error that names the variable whose value is malformed.
func (c Config) Validate() error {
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("TOOLS_NETWORKS: %v is not a network", network)
		}
	}
	return nil
}

// Asker queries remotes for the service. It implements [remotetools.Asker].
type Asker struct {
	networks []netip.Prefix
	timeout  time.Duration
}

var _ remotetools.Asker = (*Asker)(nil)

// Set provides an Asker.
var Set = wire.NewSet(NewAsker, wire.Bind(new(remotetools.Asker), new(*Asker)))

// NewAsker returns an asker.
func NewAsker(c Config) *Asker { return &Asker{c.Networks, RemoteTimeout} }

// maxReason is the greatest length of the text of an error in bytes.
const maxReason = 500

// Ask implements [remotetools.Asker].
func (a *Asker) Ask(ctx context.Context, q remotetools.Question) (tools.List, error) {
	list, err := ReadRemote(ctx, Remote{
		URL: string(q.URL), Header: q.Headers, Timeout: a.timeout,
		dial: publicdial.New(publicdial.Config{Allowed: a.networks, Timeout: a.timeout}),
	})
	f, ok := fault.As(err)
	if err == nil || !ok {
		return list, err
	}
	text := f.Message
	for name, value := range q.Headers { // which a server may repeat
		text = strings.ReplaceAll(text, value, "<"+name+">")
	}
	clean := fault.New(fault.Unavailable, registry.ClipBytes(tools.WriteOut(strings.Join(strings.Fields(text), " ")), maxReason)).WithCode(fault.UpstreamWrong)
	if f.Code == fault.UpstreamSlow {
		clean.Code = f.Code
	}
	return tools.List{}, clean
}
