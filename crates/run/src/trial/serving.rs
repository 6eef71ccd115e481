//! Connects a trial to its servers, and closes the connections.

use proctor_contain::process::SpawnError;
use proctor_core::suite::Server;
use proctor_record::event::{Actor, Blame};
use proctor_wire::client::{CallError, Client, ConnectError, ConnectOptions, ListError};

use super::Trial;
use crate::agent::{ConnectedServer, Toolbox};
use crate::replies as client_replies;
use crate::together::together;

impl Trial {
    /// The servers of the case.
    pub(super) fn servers(&self) -> Vec<Server> {
        let (case, all) = (self.case(), self.context.suite.servers.iter());
        all.filter(|server| case.uses(&server.name))
            .cloned()
            .collect()
    }

    /// Connects to the servers of the case and lists what they offer.
    pub(super) async fn serve(&self) -> Result<Toolbox, (Blame, String)> {
        let servers = self.servers();
        let connecting = together(servers.iter().map(|server| self.connect(server))).await;
        let (mut connected, mut reason) = (Vec::new(), None);
        for result in connecting {
            match result {
                Ok(server) => connected.push(server),
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        if let Some(reason) = reason {
            // All connection attempts have ended before the cleanup starts.
            together(connected.into_iter().map(|server| server.client.close())).await;
            return Err(reason);
        }
        let opened = Toolbox::open(connected, true, &self.context.offers).await;
        opened.map_err(|(server, error)| {
            let reason = format!("the server `{server}`: {error}");
            if let ListError::Call {
                source: CallError::Unauthorized(_),
                ..
            } = error
            {
                (Blame::Infra, reason)
            } else {
                (Blame::Server, reason)
            }
        })
    }

    pub(super) async fn connect(
        &self,
        server: &Server,
    ) -> Result<ConnectedServer, (Blame, String)> {
        let mut sampling = None;
        let client = if let Some(shared) = self.context.shared.get(&server.name) {
            shared.attach(&self.recorder, Actor::Loop)
        } else {
            let own = self.case().replies.get(&server.name);
            let replies = server.client.replies.overridden_by(own);
            let (sampler, guard) = self.sampler(&replies).unzip();
            sampling = guard;
            let answers = client_replies::answers(&replies, sampler, Some(self.folder.values()))
                .map_err(|error| (Blame::Suite, format!("`roots`: {error}")))?;
            let recorder = self.recorder.clone();
            let options = ConnectOptions {
                era: self.context.eras.get(&server.name).copied(),
                answers,
                ends: self.ends.clone(),
                ..self
                    .context
                    .connect_options(Actor::Loop, recorder, Some(self.folder.values()))
            };
            let connecting = Client::connect(server, &options).await;
            connecting.map_err(|error| (blame(&error), error.naming(&server.name)))?
        };
        Ok(ConnectedServer {
            name: server.name.clone(),
            client,
            allowed: server.allowed.clone(),
            sampling,
        })
    }
}

/// The blame if a server can't be reached, which is `infra` if Proctor ran out of resources.
fn blame(error: &ConnectError) -> Blame {
    match error {
        ConnectError::Spawn(SpawnError::Guard { .. })
        | ConnectError::Template(_)
        | ConnectError::Unauthorized { .. } => Blame::Infra,
        ConnectError::Spawn(SpawnError::NoFolder(_) | SpawnError::Program(_))
        | ConnectError::Address(_)
        | ConnectError::StartFailed { .. } => Blame::Server,
    }
}

pub(super) async fn close(toolbox: Option<Toolbox>) {
    if let Some(toolbox) = toolbox {
        toolbox.close().await;
    }
}
