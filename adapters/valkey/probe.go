package valkey

import (
	"context"

	"github.com/valkey-io/valkey-go"
)

// probeIdleStore sends a PING if probeWhenIdle is on. A PING without an answer counts as a failed
// call, so that the failure of a store without calls is detected as fast as that of a store in use.
func (m *managedClient) probeIdleStore(ctx context.Context) {
	if _, all := m.openBreakers(); all || !m.probeWhenIdle {
		m.idleProbeFailed = false
		return
	}
	before, err := m.idleProbeFailed, m.pingStore(ctx)
	m.idleProbeFailed = err != nil
	if ctx.Err() != nil || err == nil && !before {
		return
	}
	for _, n := range m.allNodes() {
		if err == nil {
			n.breaker.recordAnswer()
		} else if n.breaker.recordNoAnswer() {
			m.log.WithError(err).Warn("the counter store does not answer; calls fail at once until it answers again")
		}
	}
}

// pingStore sends a PING. In a cluster it sends one to all nodes, and succeeds if any node answers.
func (m *managedClient) pingStore(ctx context.Context) error {
	client := m.current.Load()
	if client == nil {
		return storeUnavailable(errNotConnected)
	}
	bounded, cancel := context.WithTimeout(ctx, m.dialTimeout)
	defer cancel()
	if (*client).Mode() != valkey.ClientModeCluster {
		return sendPing(bounded, *client)
	}
	nodes := (*client).Nodes()
	answers := make(chan error, len(nodes))
	for _, node := range nodes {
		go func() { answers <- sendPing(bounded, node) }()
	}
	err := storeUnavailable(errNotConnected)
	for range nodes {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

func sendPing(ctx context.Context, client valkey.Client) error {
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		return storeUnavailable(err)
	}
	return nil
}
