package sdk

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// Setting is a setting that a plugin declares. The host passes on no other variable of the service.
type Setting = handshake.Setting

// RunCourierWith serves the courier that open returns for the values of settings, which are by name
// and lack those that are not set. It returns the exit status when the host stops the plugin. An
// error of open must begin with the name of the setting that is wrong, and have no secret: the host
// shows it to the operator. open is called while the program serves, so create the logger before.
func RunCourierWith(settings []Setting, open func(map[string]string) (Courier, error)) (exitStatus int) {
	o := &opening[Courier]{open: open}
	return o.serve(settings, courierPlugin(o.current, settings, o.configure))
}

// RunOwnershipWith is [RunCourierWith] for a plugin that checks packages.
func RunOwnershipWith(settings []Setting, open func(map[string]string) (Ownership, error)) (exitStatus int) {
	o := &opening[Ownership]{open: open}
	return o.serve(settings, ownershipPlugin(o.current, settings, o.configure))
}

// opening is a plugin that serves before it has its settings. Calls of it panic until then.
type opening[P any] struct {
	open   func(map[string]string) (P, error)
	plugin atomic.Pointer[P]
}

func (o *opening[P]) current() P { return *o.plugin.Load() }

func (o *opening[P]) configure(values map[string]string) error {
	p, err := o.open(values)
	if err == nil && !o.plugin.CompareAndSwap(nil, &p) {
		return errors.New("the plugin has its settings already")
	}
	return err
}

// serve serves a plugin with settings. A host of version 1 has set them in the environment.
func (o *opening[P]) serve(settings []Setting, p grpcPlugin) (exitStatus int) {
	var wrong error
	if versions := os.Getenv("PLUGIN_PROTOCOL_VERSIONS"); versions != "" && !strings.Contains(versions, "2") {
		values := map[string]string{}
		for _, s := range settings {
			values[s.Name] = os.Getenv(s.Name)
		}
		wrong = o.configure(values)
	}
	return runPlugin(wrong, func() { servePlugin(handshake.Versions(p, handshake.Version2)) })
}

// Settings implements the protocol.
func (d describer) Settings(context.Context, *pluginv1.SettingsRequest) (*pluginv1.SettingsResponse, error) {
	answer := &pluginv1.SettingsResponse{}
	for _, s := range d.settings {
		answer.Settings = append(answer.Settings, &pluginv1.Setting{Name: s.Name, Secret: s.Secret})
	}
	return answer, nil
}

// Configure implements the protocol.
func (d describer) Configure(
	_ context.Context, request *pluginv1.ConfigureRequest,
) (_ *pluginv1.ConfigureResponse, err error) {
	defer recoverPanic(&err)
	if d.configure != nil {
		err = d.configure(request.GetValues())
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, validUTF8(err.Error()))
	}
	return &pluginv1.ConfigureResponse{}, nil
}
