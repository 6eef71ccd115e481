//! The cluster: namespaces with pods and config maps, in a file.
//!
//! Its main type is [`Cluster`]. It is read before every operation and written after every change,
//! because a server and several `kubectl` commands share it. A pod is created in its final state.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The tag of an image that does not exist.
const BROKEN: &str = ":no-such-tag";

pub(crate) struct Cluster {
    path: PathBuf,
    /// Namespaces by name, each with `pods` and `configmaps` by name.
    namespaces: Map<String, Value>,
}

impl Cluster {
    /// Reads the file; without one, the cluster is empty.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let namespaces = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            namespaces,
        })
    }

    pub(crate) fn save(&self) -> io::Result<()> {
        let next = self.path.with_extension("next");
        std::fs::write(&next, serde_json::to_vec(&self.namespaces)?)?;
        std::fs::rename(next, &self.path)
    }

    pub(crate) fn namespaces(&self) -> Vec<&str> {
        self.namespaces.keys().map(String::as_str).collect()
    }

    pub(crate) fn create_namespace(&mut self, name: &str) -> Result<(), String> {
        if self.namespaces.contains_key(name) {
            return Err(format!("namespaces \"{name}\" already exists"));
        }
        let empty = json!({"pods": {}, "configmaps": {}});
        self.namespaces.insert(name.to_owned(), empty);
        Ok(())
    }

    pub(crate) fn delete_namespace(&mut self, name: &str) -> Result<(), String> {
        let deleted = self.namespaces.remove(name);
        deleted.map(|_| ()).ok_or_else(|| no_namespace(name))
    }

    /// Returns the pods of a namespace, or of all, with a label such as `tier=backend`.
    pub(crate) fn pods(
        &self,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> Result<Vec<&Value>, String> {
        let names = match namespace {
            Some(name) if !self.namespaces.contains_key(name) => return Err(no_namespace(name)),
            Some(name) => vec![name],
            None => self.namespaces(),
        };
        let pods = names
            .into_iter()
            .filter_map(|name| self.namespaces[name]["pods"].as_object())
            .flat_map(Map::values);
        let selected = |pod: &&Value| {
            let label = selector.and_then(|selector| selector.split_once('='));
            label.is_none_or(|(key, value)| pod["metadata"]["labels"][key] == value)
        };
        Ok(pods.filter(selected).collect())
    }

    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Result<&Value, String> {
        self.thing(namespace, "pods", name)
    }

    pub(crate) fn config_map(&self, namespace: &str, name: &str) -> Result<&Value, String> {
        self.thing(namespace, "configmaps", name)
    }

    fn thing(&self, namespace: &str, kind: &str, name: &str) -> Result<&Value, String> {
        let found = self.namespaces.get(namespace);
        let things = &found.ok_or_else(|| no_namespace(namespace))?[kind];
        let thing = things.get(name);
        thing.ok_or_else(|| format!("{kind} \"{name}\" not found"))
    }

    /// Creates a pod from a manifest, and returns it with its status.
    pub(crate) fn create_pod(&mut self, namespace: &str, mut pod: Value) -> Result<Value, String> {
        let Some(name) = pod["metadata"]["name"].as_str().map(str::to_owned) else {
            return Err("metadata.name: required value".to_owned());
        };
        let image = pod["spec"]["containers"][0]["image"].as_str();
        let status = match image {
            None => return Err("spec.containers[0].image: required value".to_owned()),
            Some(image) if image.ends_with(BROKEN) => {
                let message = format!("Failed to pull image \"{image}\": tag not found");
                json!({"phase": "Pending", "reason": "ErrImagePull", "message": message})
            }
            _ if pod["spec"]["restartPolicy"] == "Never" => json!({"phase": "Succeeded"}),
            _ => json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
        };
        pod["metadata"]["namespace"] = json!(namespace);
        pod["status"] = status;
        let shown = pod.clone();
        self.add(namespace, "pods", &name, pod)?;
        Ok(shown)
    }

    pub(crate) fn create_config_map(
        &mut self,
        namespace: &str,
        name: &str,
        data: &BTreeMap<&str, &str>,
    ) -> Result<(), String> {
        self.add(namespace, "configmaps", name, json!({"data": data}))
    }

    fn add(&mut self, space: &str, kind: &str, name: &str, thing: Value) -> Result<(), String> {
        let namespace = self.namespaces.get_mut(space);
        let things = &mut namespace.ok_or_else(|| no_namespace(space))?[kind];
        if things.get(name).is_some() {
            return Err(format!("{kind} \"{name}\" already exists"));
        }
        things[name] = thing;
        Ok(())
    }

    pub(crate) fn delete_pod(&mut self, namespace: &str, name: &str) -> Result<(), String> {
        self.pod(namespace, name)?;
        let pods = self.namespaces[namespace]["pods"].as_object_mut();
        pods.map(|pods| pods.remove(name));
        Ok(())
    }

    /// Returns a variable of a pod's first container: its own, or one of an included config map.
    pub(crate) fn variable(&self, namespace: &str, pod: &str, name: &str) -> Option<String> {
        let container = &self.pod(namespace, pod).ok()?["spec"]["containers"][0];
        let own = container["env"].as_array().into_iter().flatten();
        let mut own = own.filter(|variable| variable["name"] == name);
        if let Some(variable) = own.next() {
            return variable["value"].as_str().map(str::to_owned);
        }
        let mut maps = container["envFrom"].as_array().into_iter().flatten();
        maps.find_map(|source| {
            let map = source["configMapRef"]["name"].as_str()?;
            let map = self.config_map(namespace, map).ok()?;
            map["data"][name].as_str().map(str::to_owned)
        })
    }
}

fn no_namespace(name: &str) -> String {
    format!("namespaces \"{name}\" not found")
}
