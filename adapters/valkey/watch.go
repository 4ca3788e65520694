package valkey

import (
	"context"

	"github.com/valkey-io/valkey-go"
)

// watch asks a watched store whether it is there, and takes no answer as a call's without one: what nobody calls is
// found away just as soon as what somebody does.
func (l *link) watch(life context.Context) {
	if _, all := l.away(); all || !l.watched {
		l.missed = false
		return
	}
	before, err := l.missed, l.ping(life)
	l.missed = err != nil
	if life.Err() != nil || err == nil && !before {
		return
	}
	for _, n := range l.nodes() {
		if err == nil {
			n.breaker.answered()
		} else if n.breaker.silent() {
			l.log.WithError(err).Warn("the store does not answer; calls do not wait for it until it does")
		}
	}
}

// ping asks the store itself, of a cluster all nodes, of which one that answers is enough.
func (l *link) ping(ctx context.Context) error {
	client := l.client.Load()
	if client == nil {
		return unavailable(errNotConnected)
	}
	bounded, cancel := context.WithTimeout(ctx, l.dial)
	defer cancel()
	if (*client).Mode() != valkey.ClientModeCluster {
		return ping(bounded, *client)
	}
	nodes := (*client).Nodes()
	answers := make(chan error, len(nodes))
	for _, node := range nodes {
		go func() { answers <- ping(bounded, node) }()
	}
	err := unavailable(errNotConnected)
	for range nodes {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

func ping(ctx context.Context, client valkey.Client) error {
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		return unavailable(err)
	}
	return nil
}
