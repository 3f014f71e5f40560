// What operators can do.

import { Http } from "./http.js";

/**
 * @typedef {{ id: number, title: string, active: boolean, waiting: Record<string, number> }} ListedTopic
 *
 * @typedef {object} Ban
 * @property {number} id
 * @property {string | null} session
 * @property {string | null} address
 * @property {string} reason
 * @property {string} created_at
 * @property {string | null} expires_at
 *
 * @typedef {object} NewBan either a session or an address
 * @property {string} [session]
 * @property {string} [address]
 * @property {string} [reason]
 * @property {string} [expires_at]
 *
 * @typedef {object} QueueView
 * @property {number} topic_id
 * @property {string | null} title
 * @property {number} room_type
 * @property {number} waiting
 * @property {string} oldest_waiting_since
 * @property {number} oldest_wait_ms
 *
 * @typedef {object} ListedRoom
 * @property {string} room_id
 * @property {number} topic_id
 * @property {number} room_type
 * @property {string} created_at
 * @property {{ seat: number, session: string, requested_room_type: number, state?: string }[]} seats
 *
 * @typedef {object} ListedReport
 * @property {number} id
 * @property {string} room_id
 * @property {number} seat whose seat was reported
 * @property {string} session of who is reported, as a ban takes it
 * @property {string} reporter
 * @property {string} reason
 * @property {string} created_at
 * @property {string | null} judged_at
 * @property {number | null} ban_id
 * @property {{ seq: number, seat: number, text: string, at: string }[]} messages
 */

/** Somebody with the admin token. */
export class Operator {
  /**
   * @param {object} options
   * @param {string | URL} options.url where the server stands, with its base path
   * @param {string} options.token
   * @param {typeof fetch} [options.fetch]
   */
  constructor(options) {
    this.http = new Http(options);
  }

  /** @returns {Promise<ListedTopic[]>} */
  async topics() {
    return (await this.http.call("GET", "admin/topics")).topics;
  }

  /**
   * @param {{ title: string, active?: boolean }} topic
   * @returns {Promise<{ id: number, title: string, active: boolean }>}
   */
  addTopic(topic) {
    return this.http.call("POST", "admin/topics", { body: topic });
  }

  /**
   * @param {number} id
   * @param {{ title?: string, active?: boolean }} change
   * @returns {Promise<{ id: number, title: string, active: boolean }>}
   */
  changeTopic(id, change) {
    return this.http.call("PUT", `admin/topics/${id}`, { body: change });
  }

  /** @returns {Promise<Ban[]>} */
  async bans() {
    return (await this.http.call("GET", "admin/bans")).bans;
  }

  /**
   * @param {NewBan} ban
   * @returns {Promise<Ban>}
   */
  ban(ban) {
    return this.http.call("POST", "admin/bans", { body: ban });
  }

  /** @param {number} id */
  async lift(id) {
    await this.http.call("DELETE", `admin/bans/${id}`);
  }

  /** @returns {Promise<QueueView[]>} */
  async queues() {
    return (await this.http.call("GET", "admin/queues")).queues;
  }

  /**
   * One page of the live rooms.
   * @param {{ topic?: number, after?: string, limit?: number }} [query]
   * @returns {Promise<{ rooms: ListedRoom[], next: string | null }>}
   */
  rooms(query = {}) {
    return this.http.call("GET", `admin/rooms?${parameters(query)}`);
  }

  /** @param {string} roomId */
  async closeRoom(roomId) {
    await this.http.call("POST", `admin/rooms/${encodeURIComponent(roomId)}/close`);
  }

  /**
   * One page of what people reported, the newest first.
   * @param {{ open?: boolean, after?: number, limit?: number }} [query] `open`: what nobody has judged
   * @returns {Promise<{ reports: ListedReport[], next: number | null }>}
   */
  reports(query = {}) {
    return this.http.call("GET", `admin/reports?${parameters(query)}`);
  }

  /**
   * Marks a report as judged; may be repeated.
   * @param {number} id
   * @param {{ ban?: { reason?: string, expires_at?: string } }} [verdict] with `ban`, who is reported is banned
   * @returns {Promise<ListedReport>}
   */
  judge(id, verdict = {}) {
    return this.http.call("POST", `admin/reports/${id}/judge`, { body: verdict });
  }

  /**
   * The server's metrics, as text.
   * @returns {Promise<string>}
   */
  metrics() {
    return this.http.answer("GET", "metrics", (response) => response.text());
  }
}

/** @param {Record<string, unknown>} query */
function parameters(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}
