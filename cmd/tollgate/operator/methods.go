package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/methodfile"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

func newMethods(p cli.Process) *cobra.Command {
	return cli.NewGroup("methods", "Manage the open-data methods listing",
		newMethodsList(p), newMethodsAdd(p), newMethodsRemove(p), newMethodsImport(p))
}

func newMethodsList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:   "list",
		Short: "List all methods",
		Long: "List all methods, ordered by id. With --output json the list has the form that\n" +
			"'tollgate methods import' reads.",
		Example: "  tollgate methods list\n  tollgate methods list --output json > methods.json",
	}, func(r run) (cli.Table, error) {
		rows, err := remoteMethods(r, nil)
		return cli.ListTable(rows), err
	})
}

func newMethodsAdd(p cli.Process) *cobra.Command {
	var m catalogue.Method
	c := &cobra.Command{
		Use:   "add --id N --path P --service-id N --service NAME [--parameter P]...",
		Short: "Add a method",
		Long: "Add a method. It is in the listing from the next request on.\n\n" +
			"The path is a template below the API root, with each parameter in braces. All\n" +
			"parameters in the path become parameters of the method, even without\n" +
			"--parameter.",
		Example: "  tollgate methods add --id 1400 --path '/parking/{lot}.{format}' --service-id 271 --service parking",
	}
	c.Flags().IntVar((*int)(&m.ID), "id", 0, "id of the method")
	c.Flags().StringVar(&m.Path, "path", "", "template, for example /parking/{lot}.{format}")
	addService(c, &m.ServiceID, &m.ServiceName)
	c.Flags().StringArrayVar(&m.Parameters, "parameter", nil,
		"name of a path parameter; repeat the flag for each parameter")
	cli.RequireFlags(c, "id", "path", "service-id", "service")
	c.PreRunE = func(*cobra.Command, []string) (err error) {
		m, err = catalogue.NewMethod(m)
		return err
	}
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		return methodTable([]catalogue.Method{m}), r.MethodChanges.Add(r.ctx, m)
	}, func(r run) (cli.Table, error) {
		return methodTable([]catalogue.Method{m}), changeRemoteMethods(r, func(all []methodRow) ([]methodRow, error) {
			if slices.ContainsFunc(all, func(one methodRow) bool { return one.ID == m.ID || one.Path == m.Path }) {
				return nil, errors.New("there is already a method with this id or path")
			}
			return append(all, newMethodRow(&m)), nil
		})
	})
}

func addService(c *cobra.Command, id *catalogue.ServiceID, name *string) {
	c.Flags().IntVar((*int)(id), "service-id", 0, "id of the service that the method belongs to")
	c.Flags().StringVar(name, "service", "", "name of the service")
}

func newMethodsRemove(p cli.Process) *cobra.Command {
	var id int
	return newDatabaseCommand(p, &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove a method from the listing",
		Example: "  tollgate methods remove 1400",
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if id, err = strconv.Atoi(args[0]); err != nil {
				return fmt.Errorf("ID %q is not a whole number", args[0])
			}
			return nil
		},
	}, func(r run) error {
		return replaceNotFound(r.MethodChanges.Remove(r.ctx, catalogue.MethodID(id)), "there is no method "+r.args[0])
	}, func(r run) error {
		return changeRemoteMethods(r, func(all []methodRow) ([]methodRow, error) {
			rest := slices.DeleteFunc(all, func(one methodRow) bool { return int(one.ID) == id })
			if len(rest) == len(all) {
				return nil, errors.New("there is no method " + r.args[0])
			}
			return rest, nil
		})
	})
}

func newMethodsImport(p cli.Process) *cobra.Command {
	var replace, sample bool
	var d methodfile.Defaults
	c := &cobra.Command{
		Use:   "import FILE | --sample",
		Short: "Import methods from a list or an OpenAPI document",
		Long: "Import methods from FILE, in JSON or YAML; - is standard input. If any method is\n" +
			"wrong, the command imports no method. A method whose id already exists is\n" +
			"replaced.\n\n" +
			"FILE contains a list in the form that 'tollgate methods list --output json'\n" +
			"prints, or an OpenAPI document, in which each path becomes a method. The id of\n" +
			"the method is x-method-id of the path or of its operation; paths without an id\n" +
			"are numbered from --first-id on. The service of the method is x-service-id and\n" +
			"x-service-name, or else the operation's first tag with the x-service-id of that\n" +
			"tag, or else --service-id and --service.\n\n" +
			"--sample imports the methods of the open-data document, which a new embedded\n" +
			"service has.",
		Example: "  tollgate methods import methods.json\n" +
			"  tollgate methods import --replace --first-id 1 --service-id 1 --service pets openapi.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 1) == sample || len(args) > 1 {
				return errors.New("name one FILE, or give --sample")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&sample, "sample", false, "import the methods of the open-data document")
	c.Flags().BoolVar(&replace, "replace", false, "remove all methods that are not in FILE")
	c.Flags().IntVar((*int)(&d.FirstID), "first-id", 0, "id for the first path without an id in an OpenAPI document")
	addService(c, &d.ServiceID, &d.ServiceName)
	var methods []catalogue.Method
	c.PreRunE = func(c *cobra.Command, args []string) (err error) {
		if sample {
			methods, err = methodfile.Sample()
			return err
		}
		if methods, err = readMethods(c.Context(), p, args[0], d); err == nil || errors.Is(err, context.Canceled) {
			return err
		}
		return fmt.Errorf("%s: %s", args[0], cli.ErrorSentence(err))
	}
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		return methodTable(methods), r.MethodChanges.Import(r.ctx, methods, replace)
	}, func(r run) (cli.Table, error) {
		return methodTable(methods), changeRemoteMethods(r, func(all []methodRow) ([]methodRow, error) {
			all = slices.DeleteFunc(all, func(one methodRow) bool {
				return replace || slices.ContainsFunc(methods, func(m catalogue.Method) bool { return m.ID == one.ID })
			})
			return append(all, each.MapRef(methods, newMethodRow)...), nil
		})
	})
}

func readMethods(ctx context.Context, p cli.Process, path string, d methodfile.Defaults) ([]catalogue.Method, error) {
	if path == "-" {
		return methodfile.Read(p.OpenStdin(ctx), d)
	}
	f, err := os.Open(path) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, errors.New("cannot be read: " + errors.Unwrap(err).Error())
	}
	defer func() { _ = f.Close() }() // it was opened for reading
	return methodfile.Read(f, d)
}

// methodRow is a method in the output of commands.
type methodRow struct {
	ID          catalogue.MethodID  `json:"method_id"    column:"ID"`
	Path        string              `json:"path"         column:"PATH"`
	Service     string              `json:"-"            column:"SERVICE"`
	ServiceID   catalogue.ServiceID `json:"service_id"   column:"SERVICE ID"`
	ServiceName string              `json:"service_name"`
	Words       string              `json:"-"            column:"PARAMETERS"`
	Parameters  []string            `json:"parameters"`
}

func methodTable(methods []catalogue.Method) cli.Table { return cli.TableOf(methods, newMethodRow) }

func newMethodRow(m *catalogue.Method) methodRow {
	return methodRow{
		m.ID, m.Path, m.ServiceName, m.ServiceID, m.ServiceName, strings.Join(m.Parameters, " "),
		append([]string{}, m.Parameters...),
	}
}

// remoteMethods returns the listing of a service. tag receives its ETag; optional.
func remoteMethods(r run, tag *string) ([]methodRow, error) {
	var listing struct {
		Methods []methodRow `json:"methods"`
	}
	err := r.call(tollgateclient.Request{Method: http.MethodGet, Path: at("methods"), Tag: tag}, &listing)
	for i := range listing.Methods {
		m := &listing.Methods[i]
		m.Service, m.Words = m.ServiceName, strings.Join(m.Parameters, " ")
	}
	return listing.Methods, err
}

// changeRemoteMethods replaces the listing of a service by a changed one, unless somebody else has
// changed it in the meantime.
func changeRemoteMethods(r run, change func([]methodRow) ([]methodRow, error)) error {
	var tag string
	all, err := remoteMethods(r, &tag)
	if err != nil {
		return err
	}
	if all, err = change(all); err != nil {
		return err
	}
	err = r.call(tollgateclient.Request{
		Method: http.MethodPut, Path: at("methods"), Header: map[string]string{"If-Match": tag},
		Body: map[string]any{"methods": append([]methodRow{}, all...)},
	}, nil)
	if fault.Is(err, fault.Stale) {
		return errors.New("somebody else has changed the listing in the meantime: try again")
	}
	return err
}
